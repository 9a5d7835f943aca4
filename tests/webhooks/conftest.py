"""Fixtures for a receiver with TLS and a certificate that the system trusts."""

import ssl

import pytest

from blogapi.webhooks import endpoint
from tests.receiver import Receiver, make_certificate


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
