"""Unsaved text: copies of the text typed into forms, and forms that are shown again after an error."""

import json

import pytest

from blogapi.storage.models import DraftCopy, Post, Revision
from blogapi.webhooks.storage import Event
from blogapi.wings.owner import copies, sessions
from blogapi.wings.owner.copies import Copy, Sent
from tests.cases import cases
from tests.databases import execute
from tests.owner.pages import FULL, Page, follow, put_copy, send, shown, view

NEW, EDIT = ("/settings/posts/new", "Save draft"), ("/settings/posts/1/edit", "Save draft")
DAY = 24 * 3600


@pytest.fixture
def put(owner):
    """Send the copy of a form, under a number."""
    return lambda fields, number, **typed: put_copy(owner, fields | {"number": str(number)} | typed)


@pytest.fixture
def form(owner):
    """The fields of a form."""
    return lambda path="/settings/posts/new", label="Save draft": view(owner, path).form(label)[1]


@pytest.fixture
def contents(database):
    """The contents of the copies in this state."""

    def read(*states):
        rows = database.rows(DraftCopy.select(DraftCopy.fields).where(DraftCopy.state.in_(states or ["open"])))
        return sorted(json.loads(fields)["content"] for (fields,) in rows)

    return read


@pytest.mark.both_engines
def test_a_copy_is_kept_as_typed_and_changes_no_post(put, form, owner, client, contents, count):
    client.post("/v1/webhooks", json={"url": "https://8.8.8.8/"})
    fields = form()
    half = {"title": "\0", "content": "\u00e9 half", "slug": "Not a slug", "params": "a: ["}
    assert put(fields, 1, **half).status_code == 200
    assert (contents(), count(Post), count(Event)) == (["\u00e9 half"], 0, 0)
    assert form()["content"] == ""  # *New post* is a separate form, and links to this one.
    again = form(f"/settings/posts/new?copy={fields['draft']}")
    assert again.items() >= half.items()
    assert view(owner, "/settings/posts/new").soup.select_one(f"a[href$='copy={fields['draft']}']")


def test_an_older_number_or_more_than_four_mebibytes_change_nothing(put, form, contents):
    fields = form()
    assert [put(fields, number, content=str(number)).status_code for number in (2, 1, 2, 3, 0)] == [200] * 5
    assert put(fields, 4, content="x" * 4_194_304).status_code == 413
    assert contents() == ["3"]
    assert put(fields, 4, content="🧁" * 1_000_000).status_code == 200
    assert contents() == ["🧁" * 1_000_000]


def test_others_are_served_while_a_large_copy_is_written(put, form, contents, meanwhile):
    assert put(form(), 1, content="x" * 300_000).status_code == 200
    # The form has read the tags that it suggests in a thread, too.
    assert (meanwhile, contents()) == ([200] * 2, ["x" * 300_000])


def test_the_unsaved_changes_of_a_published_post_wait_until_update(put, form, owner, client, post, contents):
    post(title="Hello", status="published")
    fields = form(EDIT[0], "Update")
    for number, content, unsaved in ((1, "A", ["A"]), (2, "Words.", []), (3, "Changed.", ["Changed."])):
        assert (put(fields, number, content=content).json["is_saved"], contents()) == (not unsaved, unsaved)
    assert client.get("/v1/posts/1").json["content"] == "Words."
    assert view(owner, "/settings/posts").all(".state") == ["unsaved changes", "published"]
    page = view(owner, "/settings/posts/1/edit")
    assert page.all(".notice p") == ["Unsaved changes from 2026-11-20 12:00 UTC (Firefox)"]
    page.press("Update")
    assert (client.get("/v1/posts/1").json["content"], contents()) == ("Changed.", [])


def test_the_history_says_what_each_copy_would_change_in_the_post_as_it_is(put, form, owner, client, post, threaded):
    post(content="Rye.")
    one, two = form(*EDIT), form(*EDIT)
    put(one, 1, content="Rye. Wheat, too.", tags="a", published_at="2026-11-20T12:00")
    put(two, 1)
    client.patch("/v1/posts/1", json={"title": "Loaf", "slug": "loaf"})
    titles = sorted(view(owner, "/settings/posts/1/history").titles)
    assert titles == ["Content (2 words added), tags, date", "No changes", "The earliest version", "Title, slug"]


@pytest.mark.both_engines
def test_if_two_forms_continue_the_same_text_the_later_one_is_kept_aside(put, form, owner, post, contents):
    post()
    put(form(*EDIT), 1, content="both")
    one, two = form(*EDIT), form(*EDIT)
    assert [put(one, 0).status_code, put(one, 1, content="one").status_code] == [200, 200]
    answer = put(two, 1, content="two")
    assert (answer.status_code, answer.json["browser"], answer.json["is_untouched"]) == (409, "Firefox", False)
    assert (contents("open"), contents("aside")) == (["one"], ["two"])
    assert view(owner, "/settings/posts/1/history").all(".state") == ["unsaved", "unsaved"]
    assert form(f"{EDIT[0]}?copy={two['copy']}", "Save draft")["content"] == "two"
    assert form(*EDIT)["content"] == "one"
    assert put(two | {"over": answer.json["over"]}, 2, content="two").status_code == 200
    assert (contents("open"), contents("aside")) == (["two"], ["one"])  # Neither is lost.
    assert put(one, 2, content="one more").status_code == 409
    assert (contents("open"), contents("aside")) == (["two"], ["one more"])
    send(owner, EDIT[0], two | {"number": "2", "content": "two", "over": answer.json["over"]})
    assert (contents("open"), contents("aside")) == ([], ["one more"])


def test_the_text_that_a_form_replaces_by_choice_is_kept_even_if_it_has_sent_nothing_yet(put, form, post, contents):
    post()
    one, two = form(*EDIT), form(*EDIT)
    put(two, 1, content="two")
    answer = put({name: value for name, value in one.items() if name != "content"}, 0)
    assert (answer.status_code, answer.json["is_untouched"]) == (409, True)
    assert put(one | {"over": answer.json["over"]}, 1, content="one").status_code == 200
    assert (contents("open"), contents("aside")) == (["one"], ["two"])
    assert put(two, 1).json["is_untouched"]  # Its writer has chosen, so it takes the other text.
    assert put(two, 2, content="two!").status_code == 409
    assert (contents("open"), contents("aside")) == (["one"], ["two!"])


def test_either_text_can_be_used_on_the_page_that_compares_them(put, form, owner, post, contents):
    post()
    one, two = form(*EDIT), form(*EDIT)
    put(one, 1, content="one")
    other = put(two, 1, content="two").json["over"].split()[0]
    compare = f"/settings/copies/{two['copy']}/compare?with={other}"
    view(owner, compare).press("Use the other text")
    assert (contents("open"), contents("aside")) == (["one"], ["two"])
    assert put(two, 1).json["is_untouched"]
    view(owner, compare).press("Use your text here")
    assert (contents("open"), contents("aside")) == (["two"], ["one"])
    assert (put(two, 2, content="two!").status_code, put(one, 1).json["is_untouched"]) == (200, True)
    assert (contents("open"), contents("aside")) == (["two!"], ["one"])
    comparison = view(owner, f"/settings/copies/{one['copy']}/compare?with={two['copy']}")
    put(form(*EDIT), 1, content="two, continued on a page that was loaded again")
    assert comparison.press("Use your text here").all(".problem")[0].startswith("Nothing is chosen yet: the other text")
    assert contents("open") == ["two, continued on a page that was loaded again"]


def test_a_save_that_arrives_twice_makes_one_post_and_one_revision(put, form, owner, client, contents, count):
    fields = form() | {"title": "A", "content": "A"}
    put(fields, 1)
    saved = fields | {"number": "1"}
    assert [send(owner, NEW[0], saved).headers["Location"] for _ in range(2)] == ["/settings/posts/1"] * 2
    assert put(fields, 1).status_code == 200  # It arrived late.
    assert (count(Post), count(Revision), contents()) == (1, 0, [])
    assert send(owner, NEW[0], saved | {"content": "B"}).status_code == 303
    change = form(*EDIT) | {"content": "C"}
    client.patch("/v1/posts/1", json={"excerpt": "Short."})
    assert [send(owner, EDIT[0], change).status_code for _ in range(2)] == [303, 303]
    assert (count(Revision), client.get("/v1/posts/1").json["excerpt"]) == (3, "Short.")
    assert send(owner, EDIT[0], change | {"content": "D"}).status_code == 303  # no conflict with itself
    client.patch("/v1/posts/1", json={"content": "From the phone."})
    assert send(owner, EDIT[0], change | {"content": "E"}).status_code == 412


def test_text_typed_after_a_save_with_a_lost_answer_belongs_to_the_saved_post(put, form, owner, count, contents):
    fields = form() | {"title": "A", "content": "A"}
    send(owner, NEW[0], fields | {"number": "1"})
    answer = put(fields, 2, content="B")
    assert answer.json["form"] == "/settings/posts/1/edit"
    assert (answer.json["is_saved"], answer.json["saved_etag"]) == (False, answer.json["etag"])
    assert view(owner, f"/settings/posts/new?copy={fields['draft']}").soup.select_one("#content").text.strip() == "B"
    view(owner, "/settings/posts/1/edit").press("Save draft")
    assert (count(Post), contents()) == (1, [])


def test_a_new_post_already_saved_by_another_form_is_not_created_twice(put, form, owner, client, count):
    fields = form() | {"title": "A", "content": "A"}
    put(fields, 1)
    phone, laptop = (form(f"/settings/posts/new?copy={fields['draft']}") for _ in range(2))
    put(phone, 1, content="phone")
    send(owner, NEW[0], phone | {"content": "phone", "number": "1"})
    assert put(laptop, 1, content="laptop").json["form"] == "/settings/posts/1/edit"
    page = view(owner, "/settings/posts/1/edit")
    assert page.all("del, ins") == ["phone", "laptop"]
    assert send(owner, NEW[0], laptop | {"content": "laptop"}).status_code == 412
    assert (count(Post), client.get("/v1/posts/1").json["content"]) == (1, "phone")


def test_a_field_that_was_not_touched_follows_the_post(put, form, owner, client, post):
    post(title="Hello", content="One.")
    put(form(*EDIT), 1, content="Mine.")
    client.patch("/v1/posts/1", json={"status": "published", "title": "Hi"})
    page = view(owner, "/settings/posts/1/edit")
    assert page.all(".problem") == []
    page.press("Update")
    assert client.get("/v1/posts/1").json.items() >= {"status": "published", "title": "Hi", "content": "Mine."}.items()


@pytest.mark.both_engines
def test_a_discard_can_be_undone(put, form, owner, post, contents):
    post()
    put(form(*EDIT), 1, content="Changed.")
    page = view(owner, "/settings/posts/1/edit").press("Discard")
    assert (contents(), contents("discarded")) == ([], ["Changed."])
    assert page.soup.select_one("#content").text.strip() == "Words."
    page = page.press("Undo")
    assert (contents(), page.soup.select_one("#content").text.strip()) == (["Changed."], "Changed.")


@cases("sent", [{"copy": "short"}, {"copy": "x" * 65}, {"number": "x"}, {"number": "1" * 16}, {"draft": "a"}])
def test_anything_but_a_copy_is_refused(put, form, contents, sent):
    assert put(form() | sent, sent.get("number", 1)).status_code == 400
    assert contents() == []


def test_without_a_session_and_from_another_site_no_copy_is_kept(app, put, form, owner, contents):
    fields = form()
    assert put_copy(app.test_client(), fields).status_code == 403
    for site in ("cross-site", "same-site"):
        owner.environ_base["HTTP_SEC_FETCH_SITE"] = site
        assert put(fields, 1, content="evil").status_code == 403, site
    assert contents() == []


def keep(database, name, size=1):
    database.write(copies.put, Sent(Copy(name, 1, f"draft-{name}"), {"content": "x" * size}))


@pytest.mark.both_engines
def test_beyond_the_limits_the_oldest_copies_of_the_drafts_with_the_most_are_deleted_first(database, count, clock):
    for number in range(copies.MAX_COPIES + 3):
        clock.now += 1
        keep(database, f"copy-{number:04}")
    assert count(DraftCopy) == copies.MAX_COPIES
    assert copies.find(database, "copy-0002") is None
    for number in range(2, 100):
        clock.now += 1
        copy = Copy("copy-0102", number, "draft-copy-0102")
        database.write(copies.put, Sent(copy, {"content": f"{number} " * 200}))
    assert count(DraftCopy) == copies.MAX_COPIES
    assert copies.find(database, "copy-0004")  # None of the other drafts' copies is deleted for those of this one.
    keep(database, "copy-large", copies.MAX_BYTES - 100)
    assert 1 <= count(DraftCopy) <= 10
    assert copies.find(database, "copy-large")


@pytest.mark.parametrize("path", [NEW[0], EDIT[0]])
def test_a_long_text_that_was_typed_over_is_kept_aside_and_the_form_offers_it(put, form, owner, post, contents, path):
    post(title="First")
    fields, long = form(path) | {"title": "A"}, "Some twenty sentences. " * 20
    again = path if path == EDIT[0] else f"{path}?copy={fields['draft']}"
    for number, content in enumerate((long, long[:100] + long[250:], "x", long.upper()), 1):
        put(fields, number, content=content)
    put(form(again), 1, content="")
    assert (contents("open"), contents("aside")) == ([""], [long.upper(), long[:100] + long[250:]])
    page = view(owner, again)
    assert page.all("details.folded summary") == ["Earlier text", "More"]
    earlier = form(page.soup.select_one("details.folded a")["href"])
    assert earlier["content"] in contents("aside")
    assert (put(earlier, 1, content="Back.").status_code, contents("open")) == (200, ["Back."])
    assert view(owner, "/settings/posts").titles == (["A", "First"] if path == NEW[0] else ["First"])


def test_a_new_post_in_which_nothing_is_left_is_not_listed(put, form, owner):
    put(form(), 1, content="Words.")
    assert view(owner, "/settings/posts").titles == ["(No title) Words."]
    fields = form()
    put(fields, 1, content="Words.")
    put(fields, 2, content=" ")
    assert view(owner, "/settings/posts").titles == ["(No title) Words."]


@pytest.mark.both_engines
def test_copies_are_pruned_after_some_days_and_those_without_text_after_one(put, form, owner, database, clock, count):
    put(form(), 1, content="Kept.")
    view(owner, "/settings/posts/new").press("Save draft", title="A", content="B")
    clock.now += DAY
    assert (database.write(copies.prune, 30), count(DraftCopy)) == (1, 1)
    clock.now += 29 * DAY
    assert (database.write(copies.prune, 30), count(DraftCopy)) == (1, 0)


def test_a_shared_preview_shows_the_saved_text_and_says_if_there_is_more(put, form, owner, stranger, post):
    post(title="Draft", content="Saved.")
    (link,) = view(owner, "/settings/posts/1").press("Share a preview").all("#link")
    path = link.removeprefix("http://127.0.0.1:8000")
    more = "The author has changes that are not saved yet. They are not shown here."
    assert more not in stranger.get(path).text
    put(form(*EDIT), 1, content="Typed.")
    page = view(stranger, path)
    assert (more in page.text, "Saved." in page.text, "Typed." in page.text) == (True, True, False)


def test_a_form_without_a_copy_creates_a_post_each_time(owner, form, count):
    fields = form() | {"title": "A", "content": "B", "copy": ""}
    assert [follow(owner, send(owner, NEW[0], fields)).status for _ in range(2)] == [200, 200]
    assert count(Post) == 2


def test_a_post_that_was_changed_elsewhere_is_not_overwritten_and_both_are_shown(owner, client, post):
    post(title="Hello", content="One.\nTwo.\nThree.")
    page = view(owner, "/settings/posts/1/edit")
    client.patch("/v1/posts/1", json={"content": "One.\n2.\nThree.", "tags": ["new"]})
    page = page.press("Save draft", content="One.\nTwo.\nThree!", title="Hi")
    assert (page.status, page.all(".problem h2")) == (412, ["Not saved: the post was also changed elsewhere"])
    assert client.get("/v1/posts/1").json["content"] == "One.\n2.\nThree."
    assert shown(page)["content"] == "One.\nTwo.\nThree!"
    assert page.all("section h3") == ["Content"]  # Only this form changed the title, and only the other one the tags.
    assert (page.all("del"), page.all("ins")) == (["2.", "Three."], ["Two.", "Three!"])
    assert (shown(page)["title"], shown(page)["tags"]) == ("Hi", "new")
    client.patch("/v1/posts/1", json={"tags": ["newer"]})
    for label in ("Save draft", "Save your version"):  # Neither replaces the text unless it is the version shown.
        page = page.press(label, content="One.\n2!\nThree!")
        assert (page.status, shown(page)["tags"]) == (412, "newer")
        client.patch("/v1/posts/1", json={"excerpt": label})
    page = page.press("Save your version", content="One.\n2!\nThree!")
    page = page.press("Save your version", content="One.\n2.\nThree!")
    assert page.said[0] == "“Hi” was saved."
    assert client.get("/v1/posts/1").json["content"] == "One.\n2.\nThree!"


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


@cases(("content", "is_kept"), [("'" * 60_000, True), ("x" * 70_000, False)])
def test_a_stranger_cannot_write_and_the_size_of_the_returned_form_is_limited(owner, stranger, count, content, is_kept):
    for token in ("", view(owner, "/settings/posts/new").form("Save draft")[1]["form_token"]):
        fields = FULL | {"content": content, "form_token": token}
        page = Page(stranger, send(stranger, "/settings/posts/new", fields))
        assert (page.status, content in page.soup.text, count(Post)) == (403, is_kept, 0)
        assert [each["value"] for each in page.soup.select("[name=form_token]")] in ([], [""] * 2)


def test_if_the_database_fails_the_form_is_kept_until_it_works(config, owner, client):
    page = view(owner, "/settings/posts/new")
    execute(config.database, "ALTER TABLE owner_session RENAME TO away")
    page = page.press("Save draft", **FULL)
    assert (page.status, page.all(".problem h2")) == (503, ["Not saved, but nothing is lost"])
    execute(config.database, "ALTER TABLE away RENAME TO owner_session")
    page = page.press("Save draft")
    assert (page.status, page.all(".problem p")[1]) == (403, "Press the button again.")
    assert page.press("Save draft").status == 200
    assert client.get("/v1/posts/by-slug/hi").json["content"] == FULL["content"]
