"""Webhooks on the real server: delivered despite kills, alongside requests, and across a restart."""

import socket
import threading
import time
from contextlib import suppress

import pytest

from blogapi.clock import rfc3339
from tests.receiver import Receiver
from tests.service import eventually

pytestmark = pytest.mark.slow

POST = {"title": "A", "content": "B"}


@pytest.fixture
def service(serve):
    return serve(BLOGAPI_WEBHOOK_PRIVATE="true", BLOGAPI_WEBHOOK_SECONDS="10")


def subscribe(service, url, *events):
    """Create a webhook; return its path."""
    status, headers, webhook = service.request("POST", "/v1/webhooks", {"url": url, "events": events})
    assert status == 201, webhook
    return headers["Location"]


def deliveries(service, webhook):
    return service.request("GET", f"{webhook}/deliveries")[2]


def states(service, webhook):
    return [delivery["state"] for delivery in deliveries(service, webhook)]


def test_a_scheduled_post_is_announced_within_2_s_of_its_time(service, receiver):
    subscribe(service, receiver.url, "post.published")
    begun = time.monotonic()
    service.request("POST", "/v1/webhooks/1/ping")
    eventually(lambda: receiver.messages)
    most = max(2, 1 + 3 * (time.monotonic() - begun))  # on a busy machine, three times as long as a ping takes there
    due = int(time.time()) + 2
    body = POST | {"status": "scheduled", "published_at": rfc3339(due)}
    assert service.request("PUT", "/v1/posts/by-slug/a", body)[0] == 201
    eventually(lambda: len(receiver.messages) == 2)
    assert due <= time.time() < due + most
    post = receiver.messages[1].payload["data"]["post"]
    assert (post["status"], post["id"]) == ("published", "1")
    service.request("PATCH", "/v1/posts/1", {"title": "B"})
    service.stop()
    service.start()
    assert states(service, "/v1/webhooks/1") == ["delivered", "delivered"]
    assert receiver.types == ["ping", "post.published"]


@pytest.mark.sqlite
def test_hanging_receivers_delay_neither_others_nor_requests(service, receiver):
    hanging = socket.create_server(("127.0.0.1", 0))
    dripping = Receiver()

    def drip(handler):
        with suppress(OSError):  # once the attempt has been given up
            for byte in b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100:
                handler.connection.send(bytes([byte]))
                time.sleep(0.05)

    dripping.answer = drip
    with hanging, dripping:
        hung = subscribe(service, f"http://127.0.0.1:{hanging.getsockname()[1]}", "post.created")
        dripped = subscribe(service, dripping.url, "post.created")
        subscribe(service, receiver.url, "post.created")
        seconds = []
        for number in range(1, 21):
            begun = time.monotonic()
            assert service.request("POST", "/v1/posts", POST)[0] == 201
            seconds.append(time.monotonic() - begun)
            eventually(lambda number=number: len(receiver.messages) == number, 8)
        assert max(seconds) < 8
        for webhook in (hung, dripped):
            eventually(lambda webhook=webhook: deliveries(service, webhook)[-1]["attempts"] == 1)
            first = deliveries(service, webhook)[-1]
            assert (first["state"], first["last_error"]) == ("pending", "no response within 10 s")
            assert "last_status" not in first


def test_a_service_stopped_during_deliveries_ends_within_5_s_and_continues_after_a_restart(serve, tmp_path, receiver):
    service = serve(BLOGAPI_WEBHOOK_PRIVATE="true", measured=True)
    hanging = socket.create_server(("127.0.0.1", 0))
    hung = subscribe(service, f"http://127.0.0.1:{hanging.getsockname()[1]}", "post.created")
    fine = subscribe(service, receiver.url, "post.created")
    stopped = threading.Event()

    def hold(handler):
        if len(receiver.messages) > 50:
            stopped.wait(10)
        Receiver.answer(receiver, handler)

    receiver.answer = hold
    for _ in range(100):
        service.request("POST", "/v1/posts", POST)
    eventually(lambda: len(receiver.messages) == 51)
    begun = time.monotonic()
    assert service.stop() == 0
    assert time.monotonic() < begun + 5
    assert not list(tmp_path.glob("blog.db-*"))
    assert "Traceback" not in service.log
    hanging.close()
    stopped.set()
    assert len(receiver.messages) == 51
    service.start()
    eventually(lambda: states(service, fine) == ["delivered"] * 100)
    ids = [message.id for message in receiver.messages]
    assert (len(ids), len(set(ids))) == (101, 100)  # The one in progress arrived twice.
    eventually(lambda: deliveries(service, hung)[-1]["attempts"] == 1)
    assert deliveries(service, hung)[-1]["last_error"] == "cannot connect: Connection refused"


@pytest.mark.sqlite
def test_a_slow_receiver_with_tls_does_not_delay_requests(serve, certificate, secure_receiver):
    service = serve(BLOGAPI_WEBHOOK_PRIVATE="true", SSL_CERT_FILE=certificate)
    answered = threading.Event()
    secure_receiver.answer = lambda handler: (answered.wait(20), Receiver.answer(secure_receiver, handler))
    webhook = subscribe(service, f"https://localhost:{secure_receiver.port}", "post.created")
    service.request("POST", "/v1/posts", POST)
    eventually(lambda: secure_receiver.messages)
    assert service.request("GET", "/v1/posts")[0] == 200
    assert deliveries(service, webhook)[0]["attempts"] == 0  # The attempt still waits for the receiver.
    answered.set()
    eventually(lambda: states(service, webhook) == ["delivered"])
    assert "MonkeyPatchWarning" not in service.log
