"""Deliveries are signed, in order, and retried. The tests trigger the sender's turns and set its clock."""

import json
import time
from datetime import datetime
from functools import partial

import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from standardwebhooks.webhooks import WebhookVerificationError

from blogapi.webhooks import sender as sender_module
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.sender import RETRIES
from blogapi.webhooks.storage import Delivery, Event
from tests.conftest import NOON


def sent(receiver, field):
    """A field of the post in each message, in order of arrival."""
    return [message.payload["data"]["post"][field] for message in receiver.messages]


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


def test_an_event_has_the_same_id_at_every_webhook_and_no_other_event_has_it(webhook, post, send, receiver):
    webhook(), webhook()
    post(), post()
    send()
    ids = [message.id for message in receiver.messages]
    assert sorted(ids) == sorted([*set(ids)] * 2)
    assert len(set(ids)) == 2


@pytest.mark.both_engines
def test_first_attempts_go_in_the_order_of_the_events(webhook, post, send, receiver, clock):
    webhook(events=["post.created"])
    receiver.status = 500
    for number in range(25):
        post(title=str(number))
        clock.now -= 7  # The order must not depend on the clock.
    send()
    assert sent(receiver, "title") == [str(number) for number in range(25)]


def test_user_and_password_of_a_url_are_sent_as_basic_authentication(deliver, receiver):
    deliver(f"http://a%40ü:c@127.0.0.1:{receiver.port}/hook?x=ä#y")
    (message,) = receiver.messages
    assert message.headers["authorization"] == "Basic YUDDvDpj"
    assert (message.headers["host"], message.path) == (f"127.0.0.1:{receiver.port}", "/hook?x=%C3%A4")


# Attempts


@pytest.mark.both_engines
def test_a_message_is_retried_for_four_days_and_then_only_once_on_request(
    client, deliver, send, receiver, clock, delivery, caplog
):
    receiver.status = 503
    deliver()
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
    clock.now += 25 * 3600  # longer than between any two attempts; not so long that it is deleted
    send()
    assert (delivery()["state"], len(receiver.messages)) == ("failed", 10)
    assert len({message.id for message in receiver.messages}) == 1
    assert len({message.headers["webhook-timestamp"] for message in receiver.messages}) == 10
    said = f"{receiver.messages[0].id} after 10 attempts, most recently status 503"
    assert caplog.messages == [f"webhook 1: a delivery failed for good: {said}"]
    assert RETRIES == (5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400)
    client.post(f"/v1/webhooks/1/deliveries/{receiver.messages[0].id}/redeliver")
    send()
    assert delivery() == {"state": "failed", "attempts": 11, "last_status": 503}


@pytest.mark.parametrize(
    ("status", "retry_after", "seconds"),
    [
        (503, "120", 120),
        (429, "Fri, 20 Nov 2026 12:10:00 GMT", 600),
        (503, "99999999999999999999", 86_400),
        (503, "Fri, 20 Nov 2099 12:10:00 GMT", 86_400),
        *((503, text, 5) for text in ("1", "Thu, 19 Nov 2026 12:00:00 GMT", "-120", "soon")),
        (500, "120", 5),
    ],
)
def test_retry_after_is_respected_up_to_a_day(deliver, receiver, delivery, status, retry_after, seconds):
    receiver.status, receiver.headers = status, {"Retry-After": retry_after}
    deliver()
    due = datetime.fromisoformat(delivery()["next_attempt_at"]).timestamp()
    assert NOON + seconds <= due <= NOON + seconds + 1


@pytest.mark.parametrize(
    ("status", "error"),
    [(304, {}), *((status, {"last_error": "redirects are not followed; change the url"}) for status in (301, 307))],
)
def test_redirects_are_not_followed(deliver, receiver, delivery, status, error):
    receiver.status = status
    receiver.headers = {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}
    deliver()
    assert [message.path for message in receiver.messages] == ["/hook"]
    state = delivery()
    state.pop("next_attempt_at")
    assert state == {"state": "pending", "attempts": 1, "last_status": status} | error


@pytest.mark.both_engines
def test_jitter_spreads_simultaneous_failures(webhook, post, send, receiver, clock, database):
    webhook(events=["post.created"])
    receiver.status = 500
    for _ in range(20):
        post()
    send()
    clock.now += 6
    send()
    assert len(set(database.rows(Delivery.select(Delivery.next_attempt_at)))) > 5


def test_410_turns_a_webhook_off_until_it_is_turned_on(client, webhook, post, send, receiver, caplog):
    webhook(events=["post.created"])
    receiver.status = 410
    post(), post()
    send()
    assert client.get("/v1/webhooks/1").json["active"] is False
    assert caplog.messages == ["webhook 1: a delivery failed for good: status 410, so the webhook is turned off"]
    assert [each["state"] for each in client.get("/v1/webhooks/1/deliveries").json] == ["pending", "failed"]
    post()
    send()
    assert len(receiver.messages) == 1
    receiver.status = 200
    client.patch("/v1/webhooks/1", json={"active": True})
    send()
    assert sent(receiver, "id") == ["1", "2"]


def test_a_delivery_is_repeated_on_request_until_it_succeeds(client, deliver, send, receiver, delivery, clock):
    deliver()
    receiver.status = 500
    answer = client.post(f"/v1/webhooks/1/deliveries/{receiver.messages[0].id}/redeliver")
    assert (answer.status_code, answer.json) == (202, client.get("/v1/webhooks/1/deliveries").json[0])
    assert delivery() == {"state": "pending", "attempts": 1, "last_status": 204}
    send()
    assert delivery().items() >= {"state": "pending", "attempts": 2, "last_status": 500}.items()
    receiver.status = 404
    client.post(f"/v1/webhooks/1/deliveries/{receiver.messages[0].id}/redeliver")  # even though it is not due yet
    send()
    receiver.status = 299
    for _ in range(2):
        clock.now += 24 * 3600
        send()
        assert delivery() == {"state": "delivered", "attempts": 4, "last_status": 299}
    assert len({message.id for message in receiver.messages}) == 1


@pytest.mark.both_engines
@pytest.mark.parametrize(("status", "state"), [(200, "delivered"), (500, "pending")])
def test_a_delivery_requested_during_an_attempt_is_repeated(
    client, attempt, background, turn, receiver, status, state, database
):
    receiver.status = status
    attempt()
    client.post(f"/v1/webhooks/1/deliveries/{receiver.messages[0].id}/redeliver")  # The first is not recorded yet.
    turn()
    background.turn()
    assert len(receiver.messages) == 2
    assert database.row(Delivery.select(Delivery.state, Delivery.attempts)) == (state, 2)


@pytest.mark.both_engines
def test_410_of_an_earlier_url_does_not_turn_a_webhook_off(client, attempt, background, receiver):
    receiver.status = 410
    attempt()
    client.patch("/v1/webhooks/1", json={"url": "http://8.8.8.8"})
    background.turn()
    assert client.get("/v1/webhooks/1").json["active"] is True


def test_a_changed_webhook_applies_to_messages_still_waiting_for_a_slow_receiver(
    webhook, post, turn, send, receiver, monkeypatch, database
):
    monkeypatch.setattr(sender_module, "SENDING_SECONDS", 0)  # Every receiver is slow.
    webhook(events=["post.created"])
    post(), post()
    turn()
    database.write(webhooks.change, 1, {"url": f"{receiver.url}/2"})
    send()
    assert [message.path for message in receiver.messages] == ["/hook", "/hook/2"]


def test_a_webhook_deleted_meanwhile_leaves_nothing_behind(client, attempt, background, receiver, count):
    attempt()
    client.delete("/v1/webhooks/1")
    background.turn()
    assert len(receiver.messages) == 1
    assert (count(Event), count(Delivery)) == (0, 0)


@pytest.mark.both_engines
def test_every_fifth_message_is_a_retry_if_one_is_due(webhook, post, send, receiver, clock):
    webhook(events=["post.created"])
    receiver.status = 500
    for number in range(5):
        post(title=f"old {number}")
        send()
        clock.now += 1
    del receiver.messages[:]
    clock.now += 10
    receiver.status = 200
    for number in range(20):
        post(title=f"new {number}")
    send()
    titles = sent(receiver, "title")
    assert titles[4::5] == [f"old {number}" for number in range(5)]
    assert [title for title in titles if title.startswith("new")] == [f"new {number}" for number in range(20)]


@pytest.mark.slow
def test_retries_have_their_share_even_if_the_receiver_is_so_slow_that_each_is_sent_alone(
    webhook, post, turn, receiver, clock, monkeypatch
):
    monkeypatch.setattr(sender_module, "SENDING_SECONDS", 0)
    webhook(events=["post.created"])
    receiver.status = 500
    for _ in range(21):
        post()
    for _ in range(20):
        turn()
        clock.now += 10
    retried = [message.id for message in receiver.messages[4::5]]
    assert retried == [message.id for message in receiver.messages[:4]]
    assert len({message.id for message in receiver.messages}) == 16


def test_headers_and_dispatch_bodies_are_sent_as_configured(database, receiver, send, client, clock):
    clock.now = time.time()
    headers = {"Authorization": "Bearer secret", "User-Agent": "mine"}
    add = partial(webhooks.add, headers=headers, body="dispatch")
    _, secret = database.write(add, receiver.url, ["post.created"])
    post = client.post("/v1/posts", json={"title": "A", "content": "B"}).json
    send()
    (got,) = receiver.messages
    assert (got.headers["authorization"], got.headers["user-agent"]) == ("Bearer secret", "mine")
    del post["content"]
    payload = {"timestamp": post["created_at"], "data": {"post": post}}
    assert json.loads(got.body) == {"event_type": "post.created", "client_payload": payload}
    Verifier(secret).verify(got.body, got.headers)


@pytest.mark.both_engines
def test_events_are_grouped_and_only_the_last_one_is_sent(database, receiver, send, client, clock):
    database.write(lambda tx: webhooks.add(tx, receiver.url, ["post.created"], after_seconds=60))
    database.write(lambda tx: webhooks.add(tx, receiver.url, ["post.deleted"]))
    for number in range(3):
        client.post("/v1/posts", json={"title": str(number), "content": "B"})
        send()
        clock.now += 20
    assert receiver.messages == []
    assert [each.next_attempt_at for each in webhooks.deliveries(database, 1)] == ["2026-11-20T12:01:01Z"]
    database.write(lambda tx: tx.execute(Delivery.update(next_attempt_at="2027-11-20T12:00:00Z")))
    clock.now -= 60  # The clock was set back, so the event is due in 61 seconds, not in a year.
    client.post("/v1/posts", json={"title": "2", "content": "B"})
    clock.now += 61
    send()
    assert sent(receiver, "title") == ["2"]
    client.post("/v1/posts", json={"title": "3", "content": "B"})
    client.delete("/v1/posts/1")
    send()
    assert receiver.types == ["post.created", "post.deleted"]
    clock.now += 61
    send()
    assert receiver.types == ["post.created", "post.deleted", "post.created"]
    assert [each.state for each in webhooks.deliveries(database, 1)] == ["delivered", "delivered"]
