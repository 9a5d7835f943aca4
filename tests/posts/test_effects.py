"""The effects of each kind of post change, as seen in the tables."""

import pytest
from peewee import SQL

from blogapi.clock import rfc3339
from blogapi.posts import storage as posts
from blogapi.storage.models import Author, Post, PostTag, Revision
from blogapi.webhooks.storage import EVENTS, Event


@pytest.fixture
def followed(database, webhook):
    """The rows written along with post changes, by their purpose."""
    webhook(events=EVENTS)

    def followed():
        tables = {
            "events": Event.select(Event.type).order_by(Event.id),
            "history": Revision.select(Revision.state).order_by(Revision.version),
            "tags": PostTag.select(PostTag.name, PostTag.status).order_by(PostTag.name),
        }
        rows = {name: [" ".join(map(str, row)) for row in database.rows(query)] for name, query in tables.items()}
        database.write(lambda tx: [tx.execute(SQL(f"DELETE FROM {name}")) for name in ("event", "delivery")])
        return {name: found for name, found in rows.items() if found}

    return followed


def test_each_kind_of_change_has_its_effects(client, database, clock, post, followed):
    post(title="A", tags=["a"])
    assert followed() == {"events": ["post.created"], "tags": ["a draft"]}
    client.patch("/v1/posts/1", json={"title": "A"})
    assert followed() == {"events": ["post.updated"], "tags": ["a draft"]}
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": rfc3339(clock.now + 10)})
    kept = {"history": ["replaced"]}
    assert followed() == {"events": ["post.updated"], "tags": ["a scheduled"]} | kept
    clock.now += 10
    database.write(posts.publish_due)
    assert followed() == {"events": ["post.published", "site.changed"], "tags": ["a published"]} | kept
    client.patch("/v1/tags/a", json={"name": "b"})
    assert followed() == {"events": ["tag.updated", "site.changed"], "tags": ["b published"]} | kept
    client.delete("/v1/posts/1")
    assert followed() == {"events": ["post.deleted", "site.changed"], "history": ["replaced", "deleted"]}


def test_a_deletion_for_good_leaves_nothing(client, post, followed):
    post(title="A", tags=["a"], status="published")
    assert followed() == {"events": ["post.created", "post.published", "site.changed"], "tags": ["a published"]}
    client.patch("/v1/posts/1", json={"title": "B"})
    client.delete("/v1/posts/1?permanent=true")
    assert followed() == {"events": ["post.updated", "site.changed", "post.deleted", "site.changed"]}


def test_a_damaged_post_that_is_deleted_leaves_nothing(client, database, post, followed):
    post(title="A", tags=["a"])
    client.patch("/v1/posts/1", json={"title": "B"})
    database.write(lambda tx: tx.execute(Post.update(document="{")))
    followed()
    client.delete("/v1/posts/1")
    assert followed() == {}


def test_an_import_without_events_has_all_other_effects(database, followed):
    database.write(posts.put, "a", {"title": "A", "content": "B", "tags": ["a"]}, Author("import"), with_events=False)
    assert followed() == {"tags": ["a draft"]}
