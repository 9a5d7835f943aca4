"""Deliveries: signed, in order, tried again, bounded. The sender's turns are taken by hand, and its clock is set."""

import json
import socket
import ssl
import time
from contextlib import ExitStack, suppress
from datetime import datetime

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from blogapi import endpoint
from blogapi import sender as sender_module
from blogapi.endpoint import RECEIVED_BYTES
from blogapi.models import Delivery, Event, Idempotency, Webhook
from blogapi.sender import RETRIES, Sender
from tests.conftest import NOON
from tests.receiver import Receiver, make_certificate


@pytest.fixture
def receiver():
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def sender(app, clock):
    return Sender(clock, private=True, seconds=1)


@pytest.fixture
def attempts(sender):
    """Wait for the attempts that are under way."""

    def wait():
        for thread in sender.sending.values():
            thread.join()

    return wait


@pytest.fixture
def send(sender, attempts):
    """Send all that is due."""

    def send():
        sender.turn()
        while sender.sending:
            attempts()
            sender.turn()

    return send


@pytest.fixture
def webhook(app, receiver):
    """Create a webhook, by default for the receiver; return its secret."""

    def create(url=None, events=("post.created", "post.published")):
        return Webhook.add(url or receiver.url, list(events), "2026-11-20T12:00:00Z").secret

    return create


@pytest.fixture
def delivery(client):
    """The newest delivery of a webhook, without what it says of the event."""

    def newest(webhook=1):
        delivery = client.get(f"/v1/webhooks/{webhook}/deliveries").json[0]
        return {name: value for name, value in delivery.items() if name not in ("id", "event", "created_at")}

    return newest


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def trust(certificate, monkeypatch):
    """Let the certificate be one that this system trusts."""
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


# Messages


def test_standard_webhooks_libraries_verify_a_message(webhook, post, send, receiver, clock):
    clock.now = time.time()  # They refuse messages older than five minutes.
    secret = webhook(events=["post.created"])
    created = post(title="Grüße, „Welt“ 🌍", tags=["a"])
    send()
    (message,) = receiver.messages
    payload = Verifier(secret).verify(message.body, message.headers)
    created.pop("content")
    assert payload == {"type": "post.created", "timestamp": created["created_at"], "data": {"post": created}}
    assert message.headers["webhook-timestamp"] == str(int(clock.now))
    assert message.headers["content-type"] == "application/json"
    for other in ("whsec_" + "A" * 43 + "=", secret.swapcase().replace("WHSEC", "whsec")):
        with pytest.raises(WebhookVerificationError):
            Verifier(other).verify(message.body, message.headers)


def test_what_is_sent_is_in_the_log_of_deliveries(client, webhook, post, send, receiver):
    webhook()
    post()
    send()
    assert client.get("/v1/webhooks/1/deliveries").json == [
        {
            "id": receiver.messages[0].id,
            "event": "post.created",
            "created_at": "2026-11-20T12:00:00Z",
            "state": "delivered",
            "attempts": 1,
            "last_status": 204,
        }
    ]


def test_an_event_has_the_same_id_at_every_webhook_and_no_other_event_has_it(webhook, post, send, receiver):
    webhook(), webhook()
    post(), post()
    send()
    ids = [message.id for message in receiver.messages]
    assert sorted(ids) == sorted([*set(ids)] * 2)
    assert len(set(ids)) == 2


def test_first_attempts_go_in_the_order_of_the_events(webhook, post, send, receiver, clock):
    webhook(events=["post.created"])
    receiver.status = 500
    for number in range(25):
        post(title=str(number))
        clock.now -= 7  # The clock is no order.
    send()
    titles = [message.payload["data"]["post"]["title"] for message in receiver.messages]
    assert titles == [str(number) for number in range(25)]


def test_user_and_password_of_a_url_are_sent_as_basic_authentication(webhook, post, send, receiver):
    webhook(f"http://a%40ü:c@127.0.0.1:{receiver.port}/hook?x=ä#y")
    post()
    send()
    (message,) = receiver.messages
    assert message.headers["authorization"] == "Basic YUDDvDpj"
    assert message.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert message.path == "/hook?x=%C3%A4"


# Attempts


def test_a_message_is_retried_for_four_days_and_then_failed(client, webhook, post, send, receiver, clock, delivery):
    webhook()
    receiver.status = 503
    post()
    send()
    for attempts, seconds in enumerate(RETRIES, 1):
        state = delivery()
        due = datetime.fromisoformat(state.pop("next_attempt_at")).timestamp()
        assert state == {"state": "pending", "attempts": attempts, "last_status": 503}
        assert clock.now + seconds <= due <= clock.now + seconds * 1.1 + 1
        clock.now = due - 1
        send()
        assert len(receiver.messages) == attempts
        clock.now = due
        send()
    assert delivery() == {"state": "failed", "attempts": 10, "last_status": 503}
    clock.now += 30 * 24 * 3600
    send()
    assert len(receiver.messages) == 10
    assert len({message.id for message in receiver.messages}) == 1
    assert len({message.headers["webhook-timestamp"] for message in receiver.messages}) == 10
    assert RETRIES == (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)


def test_jitter_spreads_what_failed_at_the_same_time(webhook, post, send, receiver, clock):
    webhook(events=["post.created"])
    receiver.status = 500
    for _ in range(20):
        post()
    send()
    clock.now += 6
    send()
    assert len({delivery.next_attempt_at for delivery in Delivery.select()}) > 5


def test_a_retry_that_succeeds_is_the_last(webhook, post, send, receiver, clock, delivery):
    webhook()
    receiver.status = 404
    post()
    send()
    receiver.status = 299
    clock.now += 6
    send()
    assert delivery() == {"state": "delivered", "attempts": 2, "last_status": 299}
    clock.now += 24 * 3600
    send()
    assert len(receiver.messages) == 2


def test_410_turns_a_webhook_off_until_somebody_turns_it_on(client, webhook, post, send, receiver, delivery):
    webhook(events=["post.created"])
    receiver.status = 410
    post(), post()
    send()
    assert client.get("/v1/webhooks/1").json["active"] is False
    assert [each["state"] for each in client.get("/v1/webhooks/1/deliveries").json] == ["pending", "failed"]
    post()
    send()
    assert len(receiver.messages) == 1
    receiver.status = 200
    client.patch("/v1/webhooks/1", json={"active": True})
    send()
    assert [message.payload["data"]["post"]["id"] for message in receiver.messages] == ["1", "2"]


def test_redirects_are_not_followed(webhook, post, send, receiver, delivery):
    webhook()
    receiver.status = 307
    receiver.headers = {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}
    post()
    send()
    assert [message.path for message in receiver.messages] == ["/hook"]
    state = delivery()
    assert (state["last_status"], state["last_error"]) == (307, "redirects are not followed; change the url")


def test_a_delivery_is_repeated_on_request(client, webhook, post, send, receiver, delivery):
    webhook()
    post()
    send()
    receiver.status = 500
    answer = client.post(f"/v1/webhooks/1/deliveries/{receiver.messages[0].id}/redeliver")
    assert (answer.status_code, answer.json) == (202, client.get("/v1/webhooks/1/deliveries").json[0])
    assert delivery() == {"state": "pending", "attempts": 1, "last_status": 204}
    send()
    assert delivery().items() >= {"state": "pending", "attempts": 2, "last_status": 500}.items()
    receiver.status = 200
    client.post(f"/v1/webhooks/1/deliveries/{receiver.messages[0].id}/redeliver")  # although it is not due yet
    send()
    assert delivery() == {"state": "delivered", "attempts": 3, "last_status": 200}
    assert len({message.id for message in receiver.messages}) == 1


@pytest.mark.parametrize(("status", "state"), [(200, "delivered"), (500, "pending")])
def test_one_that_is_asked_for_during_an_attempt_is_repeated(
    client, webhook, post, sender, attempts, receiver, status, state
):
    webhook()
    receiver.status = status
    post()
    sender.turn()
    attempts()
    client.post(f"/v1/webhooks/1/deliveries/{receiver.messages[0].id}/redeliver")  # The first is not written down yet.
    sender.turn()
    attempts()
    sender.turn()
    assert len(receiver.messages) == 2
    assert (Delivery.get().state, Delivery.get().attempts) == (state, 2)


def test_410_of_an_earlier_url_does_not_turn_a_webhook_off(client, webhook, post, sender, attempts, receiver):
    webhook()
    receiver.status = 410
    post()
    sender.turn()
    attempts()
    client.patch("/v1/webhooks/1", json={"url": "http://8.8.8.8"})
    sender.turn()
    assert client.get("/v1/webhooks/1").json["active"] is True


def test_a_change_of_the_webhook_counts_for_what_a_slow_receiver_has_not_been_sent_yet(
    webhook, post, sender, attempts, send, receiver, monkeypatch
):
    monkeypatch.setattr(sender_module, "BATCH_SECONDS", 0)  # Every receiver is slow.
    webhook(events=["post.created"])
    post(), post()
    sender.turn()
    attempts()
    Webhook.change(1, {"url": f"{receiver.url}/2"})
    send()
    assert [message.path for message in receiver.messages] == ["/hook", "/hook/2"]


def test_a_failed_delivery_is_repeated_once(client, webhook, post, send, receiver, delivery):
    webhook()
    receiver.status = 500
    post()
    Delivery.update(state="failed", attempts=10, next_attempt_at=None).execute()
    client.post(f"/v1/webhooks/1/deliveries/{Event.get().message_id}/redeliver")
    send()
    assert delivery() == {"state": "failed", "attempts": 11, "last_status": 500}


def test_a_webhook_deleted_meanwhile_leaves_nothing_behind(client, webhook, post, sender, attempts, receiver):
    webhook()
    post()
    sender.turn()
    attempts()
    client.delete("/v1/webhooks/1")
    sender.turn()
    assert len(receiver.messages) == 1
    assert (Event.select().count(), Delivery.select().count(), sender.attempts) == (0, 0, [])


# What can go wrong


def closed_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(
    ("url", "error"),
    [
        (f"http://127.0.0.1:{closed_port()}/", "cannot connect: Connection refused"),
        ("http://☃☃.invalid/", "url: Failed to parse: Name '☃☃' is not a valid IDNA label"),
        (f"http://{'a' * 64}/", "url: no valid name of a host"),
        (
            "http://169.254.169.254/",
            "url: 169.254.169.254 is a link-local, multicast or metadata address, which is never called",
        ),
        ("https://127.0.0.1:{port}/", "TLS: wrong version number"),
    ],
)
def test_an_error_is_told_in_place_of_a_status(webhook, post, send, receiver, delivery, url, error):
    webhook(url.replace("{port}", str(receiver.port)))
    post()
    send()
    state = delivery()
    state.pop("next_attempt_at")
    assert state == {"state": "pending", "attempts": 1, "last_error": error}


def test_a_private_address_is_not_called_unless_that_is_allowed(webhook, post, send, sender, receiver, delivery):
    sender.private = False
    webhook()
    post()
    send()
    assert receiver.messages == []
    assert delivery()["last_error"] == (
        "url: 127.0.0.1 is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these"
    )


@pytest.fixture
def resolver(monkeypatch):
    """The resolver's answers for "moving.example", one after another; an empty one is that there is none."""
    look_up, answers = socket.getaddrinfo, []

    def getaddrinfo(host, *args, **kwargs):
        address = answers.pop(0) if host == "moving.example" else host
        if not address:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(address, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def test_a_name_that_comes_to_mean_a_private_address_is_caught(
    client, post, send, sender, receiver, resolver, delivery
):
    sender.private = False
    resolver += ["8.8.8.8", "127.0.0.1"]
    assert client.post("/v1/webhooks", json={"url": f"http://moving.example:{receiver.port}"}).status_code == 201
    post()
    send()
    assert receiver.messages == []
    assert "127.0.0.1 is a private" in delivery()["last_error"]


def test_the_address_that_was_checked_is_the_one_that_is_called(webhook, post, send, receiver, resolver):
    resolver += ["127.0.0.1", "169.254.169.254"]
    webhook(f"http://moving.example:{receiver.port}")
    post()
    send()
    assert len(receiver.messages) == 1
    assert receiver.messages[0].headers["host"] == f"moving.example:{receiver.port}"
    assert resolver == ["169.254.169.254"]


def test_a_name_that_means_nothing_now_may_do_so_later(client, post, send, receiver, resolver, delivery, clock):
    resolver += ["", "", "127.0.0.1"]
    assert client.post("/v1/webhooks", json={"url": f"http://moving.example:{receiver.port}"}).status_code == 201
    post()
    send()
    assert delivery()["last_error"] == "url: the host cannot be found: Name or service not known"
    clock.now += 6
    send()
    assert delivery()["state"] == "delivered"


@pytest.fixture
def two_addresses(monkeypatch, receiver):
    """The URL of a name that means 127.0.0.2, and then the receiver's address."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{last}", receiver.port)) for last in (2, 1)]
    look_up = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *a, **k: found if host == "two.x" else look_up(host, *a, **k)
    )
    return f"http://two.x:{receiver.port}"


def test_the_next_address_is_tried_where_one_refuses(webhook, post, send, receiver, two_addresses):
    webhook(two_addresses)
    post()
    send()
    assert len(receiver.messages) == 1


def test_the_next_address_is_tried_where_nobody_answers_at_one(webhook, post, send, receiver, two_addresses):
    with socket.create_server(("127.0.0.2", receiver.port), backlog=0) as full, ExitStack() as stack:
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        webhook(two_addresses)
        post()
        begun = time.monotonic()
        send()
    assert 0.5 <= time.monotonic() - begun < 1
    assert len(receiver.messages) == 1


def test_a_silent_receiver_is_given_up(webhook, post, send, delivery):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        webhook(f"http://127.0.0.1:{silent.getsockname()[1]}")
        post()
        begun = time.monotonic()
        send()
    assert 1 <= time.monotonic() - begun < 2
    assert delivery()["last_error"] == "no answer within 1 s"


INTERIM = b"HTTP/1.1 100 Continue\r\n\r\n"
FINAL = b"HTTP/1.1 200 OK\r\n\r\n"
ENDED = "the connection broke off, or the answer was none in HTTP"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (FINAL + b"secret" * 2_000_000, 200),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nsecret", 200),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", 200),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Created\r\n\r\n", 201),
        (b"HTTP/1.1 200 OK\r\n" + b"secret: y\r\n" * 1_000_000, ENDED),
        (b"secret " * 10_000, ENDED),
        (b"", ENDED),
    ],
)
def test_of_an_answer_the_status_is_kept_and_nothing_else(webhook, post, send, receiver, delivery, answer, expected):
    receiver.answer = lambda handler: pour(handler, answer)
    webhook()
    post()
    send()
    assert expected in (delivery().get("last_status"), delivery().get("last_error"))
    assert "secret" not in json.dumps(delivery())


def pour(handler, answer):
    """Send an answer, as far as it is taken."""
    with suppress(OSError):
        handler.connection.sendall(answer)


@pytest.mark.parametrize(("more", "state"), [(0, "delivered"), (1, "pending")])
@pytest.mark.parametrize("tls", [False, True])
def test_of_an_answer_64_kib_are_read(
    webhook, post, send, receiver, secure_receiver, trust, delivery, tls, more, state
):
    count, rest = divmod(RECEIVED_BYTES - len(FINAL), len(INTERIM))
    padding = INTERIM[:-4] + b" " * rest + b"\r\n\r\n"
    answer = INTERIM * (count - 1 + more) + padding + FINAL
    assert (len(answer) == RECEIVED_BYTES) is (more == 0)
    if tls:
        answer = answer[len(INTERIM) * (0 if more else 100) :]  # What TLS adds counts as well.
    for each in (receiver, secure_receiver):
        each.answer = lambda handler: pour(handler, answer)
    webhook(f"https://localhost:{secure_receiver.port}" if tls else receiver.url)
    post()
    send()
    assert delivery()["state"] == state


# TLS


@pytest.mark.parametrize(
    ("host", "error"),
    [("localhost", None), ("127.0.0.1", "TLS: IP address mismatch, certificate is not valid for '127.0.0.1'.")],
)
def test_a_certificate_must_be_of_the_host(webhook, post, send, secure_receiver, trust, delivery, host, error):
    webhook(f"https://{host}:{secure_receiver.port}")
    post()
    send()
    assert delivery().get("last_error") == error
    assert len(secure_receiver.messages) == (error is None)


def test_a_certificate_must_be_trusted(webhook, post, send, secure_receiver, delivery):
    webhook(f"https://localhost:{secure_receiver.port}")
    post()
    send()
    assert delivery()["last_error"] == "TLS: self-signed certificate"
    assert secure_receiver.messages == []


# What is kept


def test_of_finished_deliveries_the_newest_1000_are_kept(webhook, post, send, receiver, client):
    webhook(events=["post.created"]), webhook(events=["post.deleted"])
    Event.insert_many(
        {"message_id": f"msg_{n}", "type": "post.created", "payload": "{}", "created_at": "2026-11-20T12:00:00Z"}
        for n in range(1, 1503)
    ).execute()
    rows = [{"webhook_id": 1, "event_id": n, "state": "delivered"} for n in range(1, 1502)]
    Delivery.insert_many([*rows, {"webhook_id": 2, "event_id": 1, "state": "delivered"}]).execute()
    Delivery.insert(webhook_id=1, event_id=1502, state="pending", next_attempt_at="9").execute()
    Delivery.update(state="pending", next_attempt_at="9").where(
        Delivery.event_id == 5, Delivery.webhook_id == 1
    ).execute()
    post()
    send()
    kept = [d.event_id for d in Delivery.select().where(Delivery.webhook_id == 1).order_by(Delivery.event_id)]
    assert kept == [5, *range(503, 1504)]
    assert [event.id for event in Event.select().order_by(Event.id)] == [1, *kept]


def test_finished_deliveries_are_kept_for_30_days(webhook, post, send, receiver, clock):
    webhook(events=["post.created"])
    post()
    send()
    clock.now = NOON + 29 * 24 * 3600
    post()
    send()
    receiver.status = 500
    post()
    send()
    assert Event.select().count() == 3
    clock.now = NOON + 30 * 24 * 3600
    send()
    assert [event.id for event in Event.select()] == [2, 3]
    clock.now = NOON + 60 * 24 * 3600
    send()
    assert [delivery.state for delivery in Delivery.select()] == ["pending"]


def test_idempotency_keys_are_forgotten_although_none_comes_any_more(client, sender, clock):
    for key in ("a", "b"):
        client.post("/v1/posts", json={"title": "A", "content": "B"}, headers={"Idempotency-Key": key})
        clock.now += 3600
    clock.now = NOON + 24 * 3600
    sender.turn()
    assert [known.name for known in Idempotency.select()] == ["b"]
