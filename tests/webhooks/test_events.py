"""Events: which changes are recorded, with which payload, and for which webhooks."""

import pytest

from blogapi.posts import storage as posts
from blogapi.storage.models import Author
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.sender import GONE, record_attempts
from blogapi.webhooks.storage import EVENTS, Delivery, Event
from blogapi.wings.tags import storage as tags
from tests.api.fixtures import LATER, NOW, WEBHOOK
from tests.conftest import NOON


def event(name, **data):
    return name, {"type": name, "timestamp": NOW, "data": data}


@pytest.mark.both_engines
@pytest.mark.parametrize(
    "write",
    [
        lambda client, database: client.patch("/v1/posts/1", json={"title": "B"}),
        lambda client, database: client.delete("/v1/posts/1"),
        lambda client, database: database.write(posts.publish_due),
    ],
    ids=["change", "delete", "due"],
)
def test_a_scheduled_publication_is_recorded_once(client, database, subscribe, post, types, recorded, clock, write):
    post(tags=["a"])
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": LATER})
    subscribe(events=["post.published"])
    clock.now = NOON + 3600
    for _ in range(2):
        write(client, database)
    assert types() == ["post.published"]
    published = recorded()[0][1]["data"]["post"]
    assert (published["status"], published["published_at"]) == ("published", LATER)


def updated(name, posts, previous_name):
    return event("tag.updated", tag={"name": name, "posts": posts}, previous_name=previous_name)


@pytest.mark.parametrize(
    ("carried", "changes", "expected"),
    [
        (
            [["A"], ["a"]],
            [{"name": "B"}, {"name": "b"}, None],
            [updated("B", 2, "a"), updated("b", 2, "B"), event("tag.deleted", tag={"name": "b"})],
        ),
        ([["a", "B"], ["A"], ["b"]], [{"name": "B", "merge": True}], [updated("b", 3, "A")]),
        ([["A"], ["a"]], [{"name": "a"}, {"name": "a"}], [updated("a", 2, "a")]),
    ],
    ids=["renamed and removed", "merged", "changed in one post, and then in none"],
)
def test_a_tag_change_sends_only_an_event_about_the_tag(client, subscribe, post, recorded, carried, changes, expected):
    for names in carried:
        post(tags=names, status="published")
    subscribe()
    name = "a"
    for body in changes:
        client.open(f"/v1/tags/{name}", method="PATCH" if body else "DELETE", json=body)
        name = body and body["name"]
    assert recorded() == expected


CREATED, UPDATED, DELETED, SITE = "post.created", "post.updated", "post.deleted", "site.changed"


@pytest.mark.both_engines
def test_each_change_sends_its_events_and_one_that_readers_see_is_a_change_of_the_site(
    client, database, subscribe, post, types, recorded, clock
):
    post(tags=["a"]), post(tags=["a"])
    subscribe(events=EVENTS)
    path = "/v1/posts/1"
    for expected, method, target, body in [
        ([UPDATED], "PATCH", path, {"title": "B"}),
        (["tag.updated"], "PATCH", "/v1/tags/a", {"name": "b"}),
        ([DELETED], "DELETE", path, None),
        ([CREATED], "POST", "/v1/trash/1/restore", None),
        ([UPDATED], "PATCH", path, {"status": "scheduled", "published_at": LATER}),
        ([UPDATED, "post.published", SITE], "PATCH", path, {"status": "published", "published_at": NOW}),
        ([UPDATED, SITE], "PATCH", path, {"title": "C"}),
        ([UPDATED], "PATCH", path, {"title": "C"}),
        (["tag.updated", SITE], "PATCH", "/v1/tags/b", {"name": "c"}),
        ([], "PATCH", "/v1/tags/c", {"name": "c"}),
        (["tag.deleted", SITE], "DELETE", "/v1/tags/c", None),
        ([UPDATED, SITE], "PATCH", path, {"status": "archived"}),
        ([UPDATED], "PATCH", path, {"content": "D"}),
        ([UPDATED, "post.published", SITE], "PATCH", path, {"status": "published"}),
        ([DELETED, SITE], "DELETE", path, None),
        ([CREATED, "post.published", SITE], "POST", "/v1/trash/1/restore", None),
        ([DELETED, SITE], "DELETE", f"{path}?permanent=true", None),
    ]:
        before, old = len(types()), client.get(path).json
        answer = client.open(target, method=method, json=body)
        assert (answer.status_code < 300, types()[before:]) == (True, expected), (method, target, body)
        if "/tags/" not in target:
            shown = {name: value for name, value in (answer.json or old).items() if name != "content"}
            assert recorded()[before:] == [event(name, post=shown) for name in expected]
    client.patch("/v1/posts/2", json={"status": "scheduled", "published_at": LATER})
    before, clock.now = len(types()), NOON + 3600
    database.write(posts.publish_due)
    assert types()[before:] == ["post.published", SITE]
    assert {payload["data"]["post"]["status"] for _, payload in recorded()[before:]} == {"published"}


def test_changes_of_the_site_are_sent_to_webhooks_that_name_them_and_gathered(client, subscribe, post, count):
    subscribe(), subscribe(events=["site.changed"], after_seconds=60)
    post(status="published"), post(status="published")
    deliveries = [client.get(f"/v1/webhooks/{number}/deliveries").json for number in (1, 2)]
    assert ["site.changed" in str(listed) for listed in deliveries] == [False, True]
    assert len(deliveries[1]) == 1


def test_refused_and_repeated_requests_record_nothing(client, subscribe, post, types):
    post(slug="taken", tags=["a", "b"])
    subscribe(), subscribe(events=["tag.deleted"])
    assert client.post("/v1/posts", json={"title": "A", "content": "B", "slug": "taken"}).status_code == 400
    assert client.patch("/v1/posts/1", json={"title": "B"}, headers={"If-Match": '"x"'}).status_code == 412
    assert client.delete("/v1/posts/7").status_code == 404
    assert client.patch("/v1/tags/a", json={"name": "b"}).status_code == 400
    assert client.delete("/v1/tags/c").status_code == 404
    once = {"headers": {"Idempotency-Key": "k"}, "json": {"title": "A", "content": "B"}}
    assert [client.post("/v1/posts", **once).json["id"] for _ in range(2)] == ["2", "2"]
    assert types() == ["post.created"]


def test_an_event_is_recorded_for_the_active_webhooks_that_want_it(client, subscribe, post, statements, count):
    with statements() as collected:
        post(status="published")
    assert sum("webhook" in statement for statement in collected) == 1
    subscribe(events=["post.deleted"])
    post(status="published")
    assert count(Event) == 0
    subscribe(), subscribe(events=["post.created", "ping"]), subscribe()
    client.patch("/v1/webhooks/4", json={"active": False})
    post()
    assert [len(client.get(f"/v1/webhooks/{number}/deliveries").json) for number in (1, 2, 3, 4)] == [0, 1, 1, 0]
    assert count(Event) == 1


@pytest.mark.both_engines
def test_a_transaction_sees_each_change_of_a_webhook(database):
    attempt = dict.fromkeys(("event_id", "attempts", "repeats"), 0)
    attempt |= dict.fromkeys(("state", "error", "next_attempt_at"), "")
    attempt |= {"webhook_id": 2, "url": "http://8.8.8.8", "status": GONE}

    def receivers(tx):
        counts = []
        for change in (
            *2 * [lambda tx: webhooks.add(tx, "http://8.8.8.8", ["post.created"])],
            lambda tx: webhooks.change(tx, 1, {"active": False}),
            lambda tx: webhooks.change(tx, 1, {"active": True}),
            lambda tx: record_attempts(tx, [attempt]),
            lambda tx: webhooks.delete(tx, 1),
        ):
            webhooks.record(tx, {}, "post.created")
            change(tx)
            webhooks.record(tx, {}, "post.created")
            counts.append(len(tx.active_webhooks))
        return counts

    assert database.write(receivers) == [1, 2, 1, 2, 1, 0]


@pytest.mark.both_engines
@pytest.mark.parametrize(
    "change",
    [
        lambda tx: posts.add(tx, {"title": "A", "content": "B", "status": "draft", "tags": []}, Author("x")),
        lambda tx: posts.change(tx, 1, {"title": "B"}, Author("x")),
        lambda tx: posts.delete(tx, 1, Author("x")),
        posts.publish_due,
        lambda tx: tags.rename(tx, "a", "b", False, Author("x")),
        lambda tx: tags.delete(tx, "a", Author("x")),
    ],
    ids=["create", "change", "delete", "due", "rename", "remove"],
)
def test_an_event_is_rolled_back_with_its_change(client, database, subscribe, post, clock, types, count, change):
    post(tags=["a"])
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": LATER})
    subscribe()
    before = client.get("/v1/posts").data, client.get("/v1/tags").data
    clock.now = NOON + 3600

    def fail(tx):
        change(tx)
        assert tx.row(Event.select(Event.type))
        raise ValueError("rolled back")

    with pytest.raises(ValueError, match="rolled back"):
        database.write_in_thread(fail)
    clock.now = NOON  # so that no request publishes the post
    assert (types(), count(Delivery)) == ([], 0)
    assert (client.get("/v1/posts").data, client.get("/v1/tags").data) == before


@pytest.mark.parametrize("damaged", [None, "", '["post.created"'])
def test_a_webhook_with_damaged_events_does_not_block_changes_and_can_be_repaired(
    client, subscribe, post, damage, types, damaged
):
    subscribe()
    damage("webhook", "events", damaged)
    post()
    assert client.get("/v1/webhooks").json == [WEBHOOK | {"events": []}]
    assert client.patch("/v1/webhooks/1", json={"events": ["post.created"]}).json["events"] == ["post.created"]
    before = types()
    post()
    assert types() == [*before, "post.created"]
