"""Posts with damaged documents, which SQLite cannot detect: you can delete them, and they do not affect other posts."""

import logging

import pytest

from blogapi import documents
from blogapi.posts import storage as posts
from blogapi.storage.models import FormerSlug, Post, Revision

LATER = "2026-11-20T13:00:00Z"
WHOLE = '{"id":"1","title":"A","status":"scheduled","slug":"a-title","content":"B","tags":["a"],'
DOCUMENTS = [None, "", "[]", "{", '{"id":"1"}', '{"id":"1","tags":5,"status":"draft"}', WHOLE]
DOCUMENTS += [f'{WHOLE}"published_at":"{LATER}"', f'{WHOLE}"published_at":"{LATER}","created_at":"2026']


@pytest.fixture(params=DOCUMENTS)
def damage(request, damage, client, post):
    """Damage post 1, which has the given status and shares its tag with two others."""

    def damage_post(status):
        for number in range(3):
            post(tags=["a"], former_slugs=[f"old-{number}"])
        if status == "scheduled":
            for number in (1, 2):
                change = {"status": status, "published_at": LATER}
                assert client.patch(f"/v1/posts/{number}", json=change).status_code == 200
        damage("post", "document", request.param)

    return damage_post


@pytest.mark.parametrize(("status", "headers"), [("draft", {}), ("scheduled", {"If-None-Match": '"x"'})])
def test_a_damaged_post_can_be_deleted_without_an_event_and_leaves_nothing(
    client, damage, subscribe, types, count, status, headers
):
    damage(status)
    subscribe(events=["post.deleted"])
    assert client.delete("/v1/posts/1", headers=headers).status_code == 204
    assert (types(), count(Revision)) == ([], status == "scheduled")  # the one of post 2
    assert count(FormerSlug) == 2
    assert client.get("/v1/tags").json == [{"name": "a", "posts": 2}]
    assert [each["id"] for each in client.get("/v1/posts").json] == ["3", "2"]


def test_a_damaged_due_post_is_logged_once_and_does_not_stop_others(client, damage, post, background, clock, caplog):
    damage("scheduled")
    clock.now += 3600
    with caplog.at_level(logging.INFO):
        background.turn(), background.turn()
    logged = ["post 1 is damaged, and cannot be published", "post 2 was published as scheduled"]
    assert sorted(caplog.messages) == logged
    assert [each["id"] for each in client.get("/v1/posts?status=published&tag=a&limit=1").json] == ["2"]
    assert client.patch("/v1/posts/1", json={"title": "B"}).status_code == 503
    assert post()["id"] == "4"


@pytest.mark.both_engines
@pytest.mark.parametrize(("name", "value"), [("status", "draft"), ("status", "published"), ("tags", 5)])
def test_a_due_post_whose_document_contradicts_its_row_leaves_the_queue(
    client, database, post, clock, name, value, caplog
):
    for number in (1, 2):
        post()
        client.patch(f"/v1/posts/{number}", json={"status": "scheduled", "published_at": LATER})
    document = documents.dump(documents.load(posts.get(database, 1)) | {name: value})
    database.write(lambda tx: tx.execute(Post.update(document=document).where(Post.id == 1)))
    clock.now += 3600
    for _ in range(2):
        assert [each["id"] for each in client.get("/v1/posts?status=published").json] == ["2"]
        clock.now += 1
    assert caplog.messages == ["post 1 is damaged, and cannot be published"]


def test_posts_next_to_a_damaged_one_can_be_deleted_and_their_tags_renamed(client, damage):
    damage("draft")
    assert client.delete("/v1/posts/3").status_code == 204
    assert client.delete("/v1/posts/2").status_code == 204
    assert client.patch("/v1/tags/a", json={"name": "b"}).json["posts"] == 1
    assert client.delete("/v1/tags/b").status_code == 204
    assert client.delete("/v1/posts/1").status_code == 204
