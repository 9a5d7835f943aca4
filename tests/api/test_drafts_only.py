"""A drafts-only key reads like a read-only key, and writes nothing that is or would be published."""

import re

import pytest

from tests.api.fixtures import EARLIER, LATER
from tests.conftest import message
from tests.images.pictures import gif

MAY = (
    "this key is drafts-only: it may read posts and their tags; read their history, the trash, images and metrics; "
    "create, change, trash and restore drafts, upload images, and propose changes to any post"
)
DRAFT = {"title": "A draft", "content": "Words."}
# The operations this key may use; `effects.check_permitted` checks the posts they write
WRITES = {"POST /v1/posts", "POST /v1/images", "POST /v1/trash/<id:post>/restore"}
for path in ("/v1/posts/<id:post>", "/v1/posts/by-slug/<slug:post>"):
    WRITES |= {f"PUT {path}", f"PATCH {path}", f"DELETE {path}", f"POST {path}/revisions/<id:revision>/restore"}
    WRITES |= {f"POST {path}/proposals", f"DELETE {path}/proposals/<id:proposal>"}


@pytest.fixture
def posts(client, post):
    """A post in each status, by status."""
    found = {status: post(title=status, slug=status) for status in ("published", "draft", "scheduled", "archived")}
    for status in ("published", "scheduled", "archived"):
        changes = {"status": status} | ({"published_at": LATER} if status == "scheduled" else {})
        assert client.patch(f"/v1/posts/{found[status]['id']}", json=changes).status_code == 200
    return {status: client.get(f"/v1/posts/{each['id']}").json for status, each in found.items()}


def state(client):
    """All posts, the trash, and the revisions."""
    posts = client.get("/v1/posts").json
    kept = [client.get(f"/v1/posts/{post['id']}/revisions").json for post in posts]
    return posts, client.get("/v1/trash").json, kept, client.get("/v1/tags").json


def test_it_writes_drafts_and_uploads_images(agent, client):
    created = agent.post("/v1/posts", json=DRAFT | {"tags": ["A"]}, headers={"Idempotency-Key": "1"})
    assert (created.status_code, created.json["status"]) == (201, "draft")
    again = agent.post("/v1/posts", json=DRAFT | {"tags": ["A"]}, headers={"Idempotency-Key": "1"})
    assert (again.status_code, again.json) == (201, created.json)
    assert agent.patch("/v1/posts/1", json={"title": "B"}).json["title"] == "B"
    dated = DRAFT | {"published_at": "2020-01-01T00:00:00Z"}
    assert agent.put("/v1/posts/by-slug/a-draft", json=dated).status_code == 200
    assert agent.put("/v1/posts/by-slug/another", json=DRAFT).status_code == 201
    assert agent.post("/v1/posts/1/revisions/1/restore").json["tags"] == ["A"]
    assert agent.delete("/v1/posts/1").status_code == 204
    assert agent.post("/v1/trash/1/restore").json["status"] == "draft"
    assert agent.post("/v1/images", data=gif(), content_type="image/gif").status_code == 201
    assert [revision["by"] for revision in client.get("/v1/posts/1/revisions").json] == ["drafts-only"] * 3


@pytest.mark.in_process
def test_every_other_operation_is_403_but_an_unknown_path_suggests_the_right_one(app, agent):
    for rule in app.url_map.iter_rules():
        path = re.sub("<[^>]+>", "1", rule.rule.replace("<image:image_id>", "0" * 32))
        for method in rule.methods - {"GET", "HEAD"} if rule.rule.startswith("/v1") else ():
            answer = agent.open(path, method=method)
            if f"{method} {rule.rule}" in WRITES:
                assert answer.status_code != 403, (method, path)
            else:
                assert message(answer, 403) == MAY, (method, path)
    assert agent.get("/v1/webhooks").status_code == 403
    assert message(agent.post("/v1/post"), 404) == "no such path; did you mean /v1/posts?"
    assert message(agent.delete("/v1/posts"), 405) == "this path allows GET, HEAD, POST"


@pytest.mark.parametrize("status", ["published", "scheduled", "archived"])
def test_it_cannot_change_a_post_that_is_not_a_draft(agent, client, posts, status):
    before, post = state(client), posts[status]
    same = {name: post[name] for name in ("title", "content", "status", "published_at") if name in post}
    for answer in (
        agent.patch(f"/v1/posts/{post['id']}", json={"title": "B"}),
        agent.patch(f"/v1/posts/{post['id']}", json={"title": post["title"]}),
        agent.patch(f"/v1/posts/{post['id']}", json={"status": "draft"}),
        agent.put(f"/v1/posts/by-slug/{status}", json=DRAFT),
        agent.put(f"/v1/posts/by-slug/{status}", json=DRAFT | {"status": "draft"}),
        agent.put(f"/v1/posts/by-slug/{status}", json=same),
        agent.post(f"/v1/posts/{post['id']}/revisions/1/restore"),
        agent.delete(f"/v1/posts/{post['id']}"),
        agent.delete(f"/v1/posts/by-slug/{status}"),
        agent.delete(f"/v1/posts/{post['id']}?permanent=true"),
    ):
        assert message(answer, 403).startswith(f"{MAY}; ")
    assert state(client) == before


@pytest.mark.parametrize(
    "changes",
    [
        *({"status": status} for status in ("published", "archived")),
        *({"status": "scheduled", "published_at": LATER}, {"status": "published", "published_at": EARLIER}),
    ],
)
def test_it_cannot_turn_a_draft_into_anything_else(agent, client, posts, changes):
    before = state(client)
    answers = [
        agent.patch("/v1/posts/2", json=changes),
        agent.put("/v1/posts/by-slug/draft", json=DRAFT | changes),
        agent.put("/v1/posts/by-slug/new", json=DRAFT | changes),
    ]
    if changes["status"] == "published":
        answers += [
            agent.post("/v1/posts", json=DRAFT | changes),
            agent.post("/v1/posts", json=DRAFT | changes, headers={"Idempotency-Key": "1"}),
            agent.post("/v1/posts", data="---\ndraft: false\n---\n# A", content_type="text/markdown"),
        ]
    for answer in answers:
        assert message(answer, 403) == f"{MAY}; this post is {changes['status']}, or would be"
    assert state(client) == before
    assert agent.post("/v1/posts", json=DRAFT, headers={"Idempotency-Key": "1"}).status_code == 201


def test_it_deletes_nothing_for_good(agent, client, posts):
    assert message(agent.delete("/v1/posts/2?permanent=true"), 403).endswith("but not deleted for good")
    client.delete("/v1/posts/2")
    assert message(agent.delete("/v1/trash/2"), 403) == MAY
    assert client.get("/v1/trash/2").status_code == 200


def test_it_cannot_restore_posts_that_were_not_drafts_even_if_their_time_has_passed(agent, client, posts, clock):
    for post in posts.values():
        client.delete(f"/v1/posts/{post['id']}")
    clock.now += 7200  # Now the scheduled one would be restored as a draft.
    answers = {status: agent.post(f"/v1/trash/{post['id']}/restore").status_code for status, post in posts.items()}
    assert answers == dict.fromkeys(posts, 403) | {"draft": 200}


def test_a_post_that_cannot_be_read_does_not_count_as_a_draft(agent, posts, damage):
    damage("post", "document", "{")
    assert message(agent.delete("/v1/posts/1"), 403).startswith(MAY)
    assert agent.get("/v1/posts/2").status_code == 200
