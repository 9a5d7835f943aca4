"""Micropub: updates, deletions and restorations."""

import pytest

from tests.cases import cases
from tests.micropub.conftest import PATH, PLANNED, URL, bad

XY, NEW_YEAR = ["x", "y"], "2027-01-01T00:00:00Z"


def change(client, **body):
    return client.post(PATH, json={"action": "update", "url": f"{URL}/v1/posts/1"} | body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"replace": {"content": ["New"]}}, {"content": "New"}),  # 400
        ({"replace": {"content": [{"html": "<p><b>New</b></p>"}]}}, {"content": "**New**\n"}),
        ({"add": {"category": ["c"]}}, {"tags": ["a", "b", "c"]}),  # 401
        ({"delete": {"category": ["a"]}}, {"tags": ["b"]}),  # 403
        ({"delete": {"category": ["B", 5]}}, {"tags": ["a"]}),
        ({"delete": ["category"]}, {"tags": []}),  # 404
        ({"delete": ["summary"]}, {"excerpt": None}),
        ({"delete": {"summary": ["other"]}}, {}),
        ({"replace": {"name": ["N"], "category": ["x"]}, "add": {"category": ["y"]}}, {"title": "N", "tags": XY}),
        ({"replace": {"published": ["2027-01-01"]}}, {"status": "scheduled"}),
        ({"replace": {"post-status": ["draft"]}}, {"status": "draft"}),
        ({"add": {"featured": ["https://a.example/b.jpg"]}}, {"cover_image": "https://a.example/b.jpg"}),  # 402
        ({"add": {"photo": ["https://a.example/b.jpg"]}}, {"content": "B\n\n![](https://a.example/b.jpg)\n"}),
        ({"replace": {"unknown": ["x"]}}, {}),
        ({"replace": {"rsvp": ["yes"]}, "add": {"like-of": ["x"]}, "delete": ["in-reply-to", "visibility"]}, {}),
        ({"replace": {"name": [""], "content": [{"html": ""}], "mp-slug": [], "published": [None]}}, {}),
        ({"add": {"name": [""], "category": ["", "c"]}}, {"tags": ["a", "b", "c"]}),
        ({"replace": {"summary": [""], "category": []}}, {"excerpt": None, "tags": []}),
        ({"replace": {"post-status": ["draft"], "published": ["2027-01-01"]}}, {"published_at": NEW_YEAR}),
    ],
)
def test_an_update_changes_what_it_names(client, post, body, expected):
    before = post()
    answer = change(client, **body)
    assert (answer.status_code, answer.data) == (204, b"")
    assert {name: post().get(name) for name in expected} == expected
    kept = {"title", "content", "tags", "excerpt", "slug", "created_at"} - expected.keys()
    assert {name: post()[name] for name in kept} == {name: before[name] for name in kept}
    assert len(client.get("/v1/posts/1/revisions").json) == bool(expected)


@cases(
    ("body", "message"),
    ({"replace": {"content": "New"}}, "replace, add, delete: must have a list of values for each property"),  # 405
    ({"delete": {"category": "ab"}}, "replace, add, delete: must have a list of values for each property"),
    ({"delete": [["category"]]}, "replace, add, delete: must be objects of properties"),
    ({"replace": "x"}, "replace, add, delete: must be objects of properties"),
    ({"delete": ["content"]}, "content: cannot be deleted"),
    ({"delete": {"photo": ["https://a.example/b.jpg"]}}, "photo: cannot be deleted"),
    ({"replace": {"photo": ["https://a.example/b.jpg"]}}, "photo: photos can be added, but not replaced: they "),
    ({"replace": {"name": ["x" * 256]}}, "name: must have 1 to 255 characters"),
    ({"replace": {"category": ["x" * 65]}}, "category[0]: must have 1 to 64 characters"),
    ({"replace": {"published": ["2099-01-01"], "post-status": ["archived"]}}, f"published: {PLANNED}"),
    ({"replace": {"content": [{"html": "<b>" * 500 + "a"}]}}, "content.html: its Markdown must be at most 4 times"),
    ({"delete": ["name"]}, "name: cannot be deleted"),
    ({"delete": {"category": ["a"] * 101}}, "category: must have at most 100 values"),
    ({"add": {"name": ["x"]}}, "name: already has a value; replace it"),
    ({"add": {"visibility": ["private"]}}, "visibility: must be public"),
    ({"url": "https://a.example/"}, "url: must be the URL of a post"),
    ({"url": f"{URL}/v1/posts/9", "delete": ["summary"]}, "no such post"),
)
def test_a_refused_update_changes_nothing(client, post, body, message):
    before = post()
    assert bad(change(client, **body)).startswith(message)
    assert post() == before


def test_an_update_in_a_form_is_refused(client, post):
    answer = client.post(PATH, data={"action": "update", "url": f"{URL}/v1/posts/1"})
    assert bad(answer) == "body: an update must be JSON"


@cases("as_json", [False, True])
@cases("path", ["/v1/posts/1", "/v1/posts/by-slug/a/?x#y"])
def test_a_post_is_deleted_and_restored(client, post, as_json, path):
    before = post()
    for action, status in (("delete", 404), ("undelete", 200)):  # 500 to 503
        body = {"action": action, "url": URL + path}
        answer = client.post(PATH, **({"json": body} if as_json else {"data": body}))
        assert (answer.status_code, client.get("/v1/posts/1").status_code) == (204, status)
    assert post() == before | {"updated_at": post()["updated_at"]}
    assert bad(client.post(PATH, data={"action": "undelete", "url": URL + path})) == "no such post in the trash"
    assert bad(client.post(PATH, data={"action": "publish", "url": URL + path})).startswith("action: must be one of")
