"""Webhook helpers for several test folders: receivers, also with TLS, and background work that tests trigger."""

import ssl
from dataclasses import replace
from functools import partial

import pytest

from blogapi.api.service import EXTENSION
from blogapi.config import Config
from blogapi.server.background import Background
from blogapi.webhooks import endpoint
from blogapi.webhooks import storage as webhooks
from tests.receiver import Receiver, make_certificate


@pytest.fixture
def receiver():
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def webhook_seconds():
    """The time limit of an attempt, which even a slow machine does not reach."""
    return 20


@pytest.fixture
def background(app, clock, webhook_seconds):
    config = Config(webhook_private=True, webhook_seconds=webhook_seconds)
    return Background(replace(app.extensions[EXTENSION], config=config), monotonic=clock)


def take_turn(background):
    """Take a turn, and wait for the attempts in progress; the next turn records their results."""
    background.turn()
    for thread in background.sender.sending.values():
        thread.join()


@pytest.fixture
def turn(background):
    return partial(take_turn, background)


@pytest.fixture
def send(background, turn):
    """Send everything that is due."""

    def send():
        turn()
        while background.sender.sending:
            turn()

    return send


@pytest.fixture
def webhook(database, receiver):
    """Create a webhook, by default for the receiver; return its secret."""

    def create(url=None, events=("post.created", "post.published")):
        return database.write(webhooks.add, url or receiver.url, list(events))[1]

    return create


@pytest.fixture
def delivery(client):
    """The newest delivery of a webhook, without the fields about the event."""

    def newest(webhook=1):
        delivery = client.get(f"/v1/webhooks/{webhook}/deliveries").json[0]
        return {name: value for name, value in delivery.items() if name not in ("id", "event", "created_at")}

    return newest


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def trust(certificate, monkeypatch):
    """Make the system trust the certificate."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    endpoint.tls.cache_clear()
    yield
    endpoint.tls.cache_clear()


@pytest.fixture
def secure_receiver(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with Receiver(tls=context) as receiver:
        yield receiver


@pytest.fixture
def deliver(webhook, post, send):
    """Create a webhook, by default for the receiver, and a post; send everything due."""

    def deliver(url=None):
        webhook(url)
        post()
        send()

    return deliver


@pytest.fixture
def attempt(webhook, post, turn):
    """Create a webhook for the receiver, and a post; attempt the delivery without recording its result."""

    def attempt():
        webhook(events=["post.created"])
        post()
        turn()

    return attempt
