"""Webhook helpers for several test folders: a receiver, and background work that tests trigger."""

from dataclasses import replace
from functools import partial

import pytest

from blogapi.api.service import EXTENSION
from blogapi.config import Config
from blogapi.server.background import Background
from blogapi.webhooks import storage as webhooks
from tests.receiver import Receiver


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
