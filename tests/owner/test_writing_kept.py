"""Writing posts on the owner's page: whatever happens, nothing typed is lost."""

import sqlite3
from contextlib import closing

import pytest

from blogapi.storage.models import Post
from blogapi.wings.owner import sessions
from tests.owner.pages import Page, enter, send, view
from tests.owner.test_writing import FULL, shown


def test_a_post_that_was_changed_elsewhere_is_not_overwritten_and_both_are_shown(owner, client, post):
    post(title="Hello", content="One.\nTwo.\nThree.")
    page = view(owner, "/settings/posts/1/edit")
    client.patch("/v1/posts/1", json={"content": "One.\n2.\nThree.", "tags": ["new"]})
    page = page.press("Save draft", content="One.\nTwo.\nThree!", title="Hi")
    assert (page.status, page.all(".problem h2")) == (412, ["Not saved: the post was changed elsewhere, too"])
    assert client.get("/v1/posts/1").json["content"] == "One.\n2.\nThree."
    assert shown(page)["content"] == "One.\nTwo.\nThree!"
    assert page.all("section h3") == ["Content"]  # Only this form changed the title, and only the other one the tags.
    assert (page.all("del"), page.all("ins")) == (["2.", "Three."], ["Two.", "Three!"])
    assert (shown(page)["title"], shown(page)["tags"]) == ("Hi", "new")
    page = page.press("Save draft", content="One.\n2.\nThree!")
    assert page.said[0] == "“Hi” was saved."
    assert client.get("/v1/posts/1").json["content"] == "One.\n2.\nThree!"


def test_a_post_that_was_deleted_in_the_meantime_can_be_created_again(owner, client, post):
    post()
    page = view(owner, "/settings/posts/1/edit")
    client.delete("/v1/posts/1")
    page = page.press("Save draft", **FULL)
    assert (page.status, page.all(".problem h2")) == (404, ["Not saved, but nothing is lost"])
    page = page.press("Save draft")
    assert page.said[0] == "“Hello” was created."
    assert client.get("/v1/posts/2").json["content"] == FULL["content"]


@pytest.mark.parametrize("path", ["/settings/posts/new", "/settings/posts/1/edit"])
def test_after_a_session_has_ended_the_form_is_kept_until_there_is_a_new_one(app, database, owner, client, post, path):
    post()
    label = "Save draft"
    page = view(owner, path)
    database.write(sessions.end_all)
    page = page.press(label, **FULL)
    assert (page.status, page.all(".problem h2")) == (403, ["Not saved, but nothing is lost"])
    assert shown(page, label).items() >= FULL.items()
    send(owner, "/settings/open", {"link": database.write(sessions.add, sessions.LINK)})  # in another tab
    page = page.press(label)
    assert (page.status, shown(page, label).items() >= FULL.items()) == (403, True)
    page = page.press(label)
    assert page.status == 200
    assert client.get("/v1/posts/by-slug/hi").json["content"] == FULL["content"]


@pytest.mark.parametrize(("content", "is_kept"), [("'" * 60_000, True), ("x" * 70_000, False)])
def test_without_a_session_the_size_of_the_returned_form_is_limited(stranger, content, is_kept):
    page = Page(stranger, send(stranger, "/settings/posts/new", FULL | {"content": content}))
    assert (page.status, content in page.soup.text) == (403, is_kept)


def test_if_the_database_fails_the_form_is_kept_until_it_works(config, owner, client):
    page = view(owner, "/settings/posts/new")
    rename = "ALTER TABLE {} RENAME TO {}"
    with closing(sqlite3.connect(config.database, isolation_level=None)) as other:
        other.execute(rename.format("owner_session", "away"))
        page = page.press("Save draft", **FULL)
        assert (page.status, page.all(".problem h2")) == (503, ["Not saved, but nothing is lost"])
        other.execute(rename.format("away", "owner_session"))
    page = page.press("Save draft")
    assert (page.status, page.all(".problem p")[1]) == (403, "Press the button again.")
    assert page.press("Save draft").status == 200
    assert client.get("/v1/posts/by-slug/hi").json["content"] == FULL["content"]


def test_a_stranger_cannot_write_anything(app, database, client, post, count):
    post()
    theirs = view(enter(app, database), "/settings/posts/new").form("Save draft")[1]
    stranger = app.test_client()
    for fields in (FULL, FULL | theirs, FULL | {"form_token": ""}):
        for action in ("/settings/posts/new", "/settings/posts/1/edit"):
            page = Page(stranger, send(stranger, action, fields))
            assert page.status == 403
            assert page.soup.select_one("[name=form_token]")["value"] == ""
    assert count(Post) == 1
