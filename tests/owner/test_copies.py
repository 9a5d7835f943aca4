"""Unsaved text: the copy of the text typed into a form, and forms that are shown again after an error."""

import pytest

from blogapi.storage.models import DraftCopy, Post
from blogapi.webhooks.storage import Event
from blogapi.wings.owner import copies, sessions
from blogapi.wings.owner.copies import Copy, Sent
from tests.cases import cases
from tests.databases import execute
from tests.owner.pages import EDIT, FULL, NEW, Page, follow, put_copy, send, shown, view

DAY = 24 * 3600


@pytest.mark.both_engines
def test_a_copy_is_kept_as_typed_and_changes_no_post(put, form, owner, client, contents, count):
    client.post("/v1/webhooks", json={"url": "https://8.8.8.8/"})
    fields = form()
    half = {"title": "\0", "content": "\u00e9 half", "slug": "Not a slug", "params": "a: ["}
    assert put(fields, 1, **half).status_code == 200
    assert (contents(), count(Post), count(Event)) == (["\u00e9 half"], 0, 0)
    assert form()["content"] == ""  # *New post* is a separate form. The list links only to this one.
    (row,) = view(owner, "/settings/posts").soup.select(".posts li")
    assert form(row.a["href"]).items() >= half.items()


def test_an_older_number_or_more_than_four_mebibytes_change_nothing(put, form, contents):
    fields = form()
    assert [put(fields, number, content=str(number)).status_code for number in (2, 1, 2, 3, 0)] == [200] * 5
    assert (put(fields, 4, content="x" * 4_194_304).status_code, contents()) == (413, ["3"])
    assert put(fields, 4, content="🧁" * 1_000_000).status_code == 200
    assert contents() == ["🧁" * 1_000_000]


def test_others_are_served_while_a_large_copy_is_written(put, form, contents, meanwhile):
    assert put(form(), 1, content="x" * 300_000).status_code == 200
    # The form has read the tags that it suggests, and earlier texts, in a thread, too.
    assert (meanwhile, contents()) == ([200] * 3, ["x" * 300_000])


def test_the_unsaved_changes_of_a_published_post_wait_until_update(put, form, owner, client, post, contents):
    post(title="Hello", status="published")
    fields = form(EDIT[0], "Update")
    for number, content, unsaved in ((1, "A", ["A"]), (2, "Words.", []), (3, "Changed.", ["Changed."])):
        assert (put(fields, number, content=content).json["is_saved"], contents()) == (not unsaved, unsaved)
    assert client.get("/v1/posts/1").json["content"] == "Words."
    assert view(owner, "/settings/posts").all(".state") == ["unsaved changes", "published"]
    page = view(owner, "/settings/posts/1/edit")
    assert page.all(".notice p") == ["Unsaved changes from 2026-11-20 12:00 UTC (Firefox) Compare with the post"]
    assert view(owner, page.soup.select_one(".notice a")["href"]).all(".added") == ["Changed."]
    send(owner, *page.form("Update"))
    assert (client.get("/v1/posts/1").json["content"], contents()) == ("Changed.", [])
    put(page.form("Update")[1], 9, content="More.")
    (notice,) = view(owner, "/settings/posts/1").all(".notice p")  # and none that says "was saved"
    assert notice.startswith("Unsaved changes from")


def test_the_history_says_what_each_copy_would_change_in_the_post_as_it_is(put, form, owner, client, post, threaded):
    fields = form() | {"title": "A", "content": "Rye, which grows in cold fields."}
    put(fields, 1, content="Half a loaf of bread is better")
    put(fields, 2, content="")
    send(owner, NEW[0], fields | {"to": "published", "number": "3"})
    one, two = form(EDIT[0], "Update"), form(EDIT[0], "Update")
    put(one, 1, content="Rye, which grows in colder, <wetter> fields than most.", tags="a")
    put(two, 1)
    client.patch("/v1/posts/1", json={"title": "Loaf", "slug": "loaf"})
    page = view(owner, "/settings/posts/1/history")
    assert {*page.all("ol:not(.versions) mark")} & {"grows", "colder,", "<wetter>"} == {"colder,", "<wetter>"}
    assert sorted(page.all("ol:not(.versions) .muted")) == [
        "Content (5 words added, 2 words removed) “…which grows in colder, <wetter> fields than…”, tags · “A”",
        "No changes · “A”",
        "Title, content (7 words added, 6 words removed) “Half a loaf of bread is better” · “A”",
    ]


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
    for number in range(8):  # PostgreSQL would give up a transaction in which one copy takes three seconds to arrive.
        clock.now += 1
        keep(database, f"copy-large-{number}", copies.MAX_BYTES // 8 - 100)
    assert copies.find(database, "copy-large-0")
    assert 8 <= count(DraftCopy) <= 20


@pytest.mark.parametrize("path", [NEW[0], EDIT[0]])
def test_a_long_text_that_was_typed_over_is_kept_aside_and_the_form_offers_it(put, form, owner, post, contents, path):
    post(title="First")
    fields, long = form(path) | {"title": "A"}, "Some twenty sentences. " * 20
    again = path if path == EDIT[0] else f"{path}?copy={fields['draft']}"
    for number, content in enumerate((long, long[:100] + long[250:], "x", long.upper()), 1):
        put(fields, number, content=content)
    put(form(again), 1, content="")
    assert (contents("open"), contents("aside")) == ([""], [long.upper(), long])
    page = view(owner, again)
    assert page.all("details.folded summary") == ["Earlier text", "More"]
    earlier = view(owner, page.soup.select_one("details.folded a")["href"])
    text = f"{earlier.soup.select_one('.text').text.strip()} "
    assert text in contents("aside")
    assert page.all("details.folded .muted")[0] == f"Content ({len(text.split())} words added) “{text[:45].strip()}…”"
    assert earlier.press("Restore this text").form("Save draft")[1]["content"] == text
    assert contents("open") == [text]
    assert view(owner, "/settings/posts").titles == ["A", "First"][: 2 if path == NEW[0] else 1]


def test_the_bar_leads_to_an_earlier_text_only_if_that_was_just_removed(put, form, owner):
    fields, long = form() | {"title": "A"}, "Some twenty sentences. " * 20
    earlier = [put(fields, number, content=text).json["earlier"] for number, text in enumerate((long, "x", long), 1)]
    assert (earlier[0], earlier[2]) == ("", "")
    send(owner, NEW[0], fields | {"number": "4", "content": f"{long} Second."})
    answer = put(fields | {"draft": "1"}, 5, content="y").json
    assert (answer["earlier"], answer["is_cut"]) == ("", True)  # The saved post has the text that was removed.
    assert view(owner, EDIT[0]).all("details.folded summary") == ["More"]
    assert len(view(owner, f"{EDIT[0][:-5]}/history").all("ol:not(.versions) .muted")) == 2
    page = view(owner, f"/settings/copies/{earlier[1]}").press("Restore this text")
    assert (page.all(".problem"), page.form("Save draft")[1]["content"]) == ([], long)
    long = f"Not saved. {long}"
    put(form(*EDIT), 1, content=long)
    for number in range(1, 12):  # The writer holds Backspace, and the form is loaded again in between.
        fields = form(*EDIT) if number in (1, 4) else fields
        answer = put(fields, number, content=long[: -40 * number]).json
    assert view(owner, f"/settings/copies/{answer['earlier']}").all(".text") == [long.strip()]


def test_a_new_post_in_which_nothing_is_left_is_not_listed(put, form, owner):
    put(form(), 1, content="Words.")
    page = view(owner, "/settings/posts?status=draft")
    assert (page.titles, page.all("[aria-current=true]")) == (["(No title) Words."], ["Draft 1"])
    fields = form()
    put(fields, 1, title="(No title) yet")
    assert view(owner, "/settings/posts").all(".posts .hint") == ["(No title) Words."]
    put(fields, 2, content=" ", caret="1")
    page = view(owner, "/settings/posts")
    assert page.titles == ["(No title) Words."]
    page = page.press("Discard")
    assert (page.titles, page.said[0], page.all("h2")) == ([], "“Words.” is in the trash.", ["No posts"])
    page = view(owner, "/settings/trash")
    assert page.titles == ["(No title) Words."]
    assert page.press("Restore").form("Save draft")[1]["content"] == "Words."
    assert view(owner, "/settings/trash").all("main li") == ["The trash is empty."]


@cases(
    ("name", "old", "new", "is_kept"),
    ("title", "A long walk in the fog", "Morning", True),
    ("excerpt", "A long walk in the fog, and a lake.", "A long walk in the fog.", False),
    ("excerpt", "A long walk in the fog, and a lake.", "", True),
    ("content", "A walk. The fog and the lake.", "A walk.[^1] The fog and the lake.\n\n[^1]: Short.", False),
)
def test_a_passage_that_is_typed_over_is_kept_in_each_field(put, form, contents, name, old, new, is_kept):
    fields, before = form(), len(contents("aside"))
    put(fields, 1, **{name: old})
    put(fields, 2, **{name: new})
    assert len(contents("aside")) - before == is_kept


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


@pytest.mark.parametrize("path", ["/settings/posts/new", "/settings/posts/1/edit"])
def test_after_a_session_has_ended_the_form_is_kept_until_there_is_a_new_one(app, database, owner, client, post, path):
    post()
    page = view(owner, path)
    database.write(sessions.end_all)
    page = page.press("Save draft", **FULL)
    assert (page.status, page.all(".problem h2")) == (403, ["Not saved, but nothing is lost"])
    assert shown(page).items() >= FULL.items()
    send(owner, "/settings/open", {"link": database.write(sessions.add, sessions.LINK)})  # in another tab
    page = page.press("Save draft")
    assert (page.status, shown(page).items() >= FULL.items()) == (403, True)
    page = page.press("Save draft")
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
