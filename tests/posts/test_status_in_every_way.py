"""The status and date of a post are the same for every way to write it."""

import pytest

from tests.owner.pages import enter, view
from tests.posts.statuses import API, FUTURE, NO, PAST, PROGRAMS, TABLE, given, outcome


@pytest.fixture
def new(client):
    """Create a draft without a date; return its path."""
    return lambda: f"/v1/posts/{client.post('/v1/posts', json={'title': 'A', 'content': 'B'}).json['id']}"


def test_each_way_of_the_api_takes_the_same_statuses_and_dates(client, new):
    for (status, date), expected in TABLE.items():
        fields = {"title": "A", "content": "B"} | given(status, date)
        ways = {
            "POST": lambda fields: client.post("/v1/posts", json=fields),
            "PUT by slug": lambda fields: client.put("/v1/posts/by-slug/another", json=fields),
            "PUT by id": lambda fields: client.put(new(), json=fields),
            "PATCH": lambda fields: client.patch(new(), json=fields),
        }
        for way, send in ways.items():
            client.delete("/v1/posts/by-slug/another?permanent=true")
            answer = send(fields)
            found = outcome(answer.json) if answer.status_code < 300 else NO
            is_refused = way == "POST" and status in ("scheduled", "archived")
            assert found == (NO if is_refused else expected[API]), (way, status, date, answer.text)


def test_the_owner_page_takes_the_same_statuses_and_dates_but_lets_a_draft_have_a_future_date(client, app, new):
    owner = enter(app)
    for (status, date), expected in TABLE.items():
        typed = {"title": "A", "content": "B", "status": status or "draft", "published_at": date.removesuffix("Z")}
        expected = "draft future" if (typed["status"], date) == ("draft", FUTURE) else expected[API]
        for path in ("/settings/posts/new", f"/settings{new()[3:]}/edit"):
            page = view(owner, path).press("Save draft", **typed)
            post = client.get("/v1/posts?limit=1").json[0]
            assert (outcome(post) if page.status < 300 else NO) == expected, (path, status, date)


def test_writing_programs_can_schedule_and_plan(client, new):
    names = {"status": "post-status", "published_at": "published"}
    for number, ((status, date), expected) in enumerate(TABLE.items()):
        properties = {names[name]: [value] for name, value in given(status, date).items()}
        creation = {"properties": {"content": [f"B{number}"]} | properties}
        answer = client.post("/micropub", json=creation)
        found = outcome(client.get("/v1/posts?limit=1").json[0]) if answer.status_code == 201 else NO
        assert found == expected[PROGRAMS], (status, date)
        path = new()
        update = {"action": "update", "url": f"http://127.0.0.1:8000{path}", "replace": properties}
        answer = client.post("/micropub", json=update)
        found = outcome(client.get(path).json) if answer.status_code == 204 else NO
        draft = {"": "draft", PAST: "draft past", FUTURE: "draft future"}[date]  # It stays what it was.
        assert found == (expected[PROGRAMS] if status else draft), (status, date)
