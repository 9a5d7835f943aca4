"""Tags on the owner's page: filtering, renaming, merging and deleting them, and undoing these changes."""

import pytest

from tests.owner.pages import follow, send, view


@pytest.fixture
def tagged(post):
    post(title="One", tags=["Travel", "a"])
    post(title="Two", tags=["travel", "b"])


def tags(client):
    return {tag["name"]: tag["posts"] for tag in client.get("/v1/tags").json}


def row(page, name):
    """The row of a tag."""
    return next(each for each in page.soup.select(".tags li") if each.a.text == name)


def press(client, tag, label, **typed):
    """Press a button in the row of a tag; return the page that a browser then shows."""
    forms = row(view(client, "/settings/tags"), tag).select("form")
    form = next(each for each in forms if label in each.button.text)
    fields = {each["name"]: each.get("value", "") for each in form.select("input:not([type=checkbox])")}
    return follow(client, send(client, form["action"], fields | typed))


def test_tags_are_listed_and_searched_with_their_number_of_posts_and_link_to_them(owner, tagged):
    page = view(owner, "/settings/tags")
    assert page.all(".tags .muted") == ["1 post", "1 post", "2 posts"]
    found = view(owner, row(page, "travel").a["href"])
    assert found.titles == ["Two", "One"]
    assert view(owner, "/settings/posts?tag=b").titles == ["Two"]
    assert view(owner, "/settings/tags?q=RAV").titles == ["travel"]
    assert view(owner, "/settings/tags?q=zz").said[0] == "No tag name contains this."


@pytest.mark.both_engines
def test_a_tag_is_renamed_merged_and_deleted_and_each_is_undone(owner, tagged, client, clock):
    before = tags(client)
    for label, fields, after in (
        (("travel", "Rename"), {"name": "Trips"}, {"a": 1, "b": 1, "Trips": 2}),
        (("a", "Rename"), {"name": "b", "merge": "on"}, {"b": 2, "travel": 2}),
        (("travel", "Yes, delete"), {}, {"a": 1, "b": 1}),
    ):
        page = press(owner, *label, **fields)
        assert tags(client) == after
        clock.now += 5
        page = page.press("Undo")
        assert tags(client) == before
        assert page.said[0].endswith("were restored.")
        clock.now += 5


def test_a_taken_name_requires_a_merge(owner, tagged, client):
    page = press(owner, "a", "Rename", name="b")
    assert (page.status, page.all(".problem p")) == (400, ["Nothing was changed: the tag “b” already exists."])
    assert tags(client) == {"a": 1, "b": 1, "travel": 2}
    page.press("Merge the two")
    assert tags(client) == {"b": 2, "travel": 2}
    page = press(owner, "b", "Rename", name=" ")
    assert (page.status, "must have 1 to 64 characters" in page.all(".problem")[0]) == (400, True)


def test_an_undo_leaves_what_others_changed_in_the_same_second_or_since_alone(owner, tagged, client, threaded):
    page = press(owner, "a", "Rename", name="x")
    press(owner, "b", "Rename", name="y")
    assert page.press("Undo").said[0] == "The tags of 1 post were restored."
    assert tags(client) == {"a": 1, "travel": 2, "y": 1}
    page = press(owner, "a", "Rename", name="x")
    last = press(owner, "travel", "Rename", name="trips")
    assert page.press("Undo").said[0] == "The tags of 0 posts were restored."
    assert tags(client) == {"trips": 2, "x": 1, "y": 1}
    assert last.press("Undo").said[0] == "The tags of 2 posts were restored."
    assert tags(client) == {"travel": 2, "x": 1, "y": 1}
