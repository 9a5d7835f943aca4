"""A post in several forms, or saved by late and repeated requests: no text takes the place of another unseen."""

import pytest

from blogapi.posts import idempotency
from blogapi.storage.models import Post, Revision
from blogapi.wings.owner import copies
from tests.owner.pages import EDIT, NEW, send, shown, view


@pytest.mark.both_engines
def test_if_two_forms_continue_the_same_text_the_later_one_is_kept_aside(put, form, owner, post, contents):
    post()
    put(form(*EDIT), 1, content="both")
    one, two = form(*EDIT), form(*EDIT)
    assert [put(one, 0).status_code, put(one, 1, content="one").status_code] == [200, 200]
    answer = put(two, 1, content="two")
    assert (answer.status_code, answer.json["browser"], answer.json["is_untouched"]) == (409, "Firefox", False)
    assert (contents("open"), contents("conflict")) == (["one"], ["two"])
    assert sorted(view(owner, "/settings/posts/1/history").all(".state")) == ["in the form", "unsaved"]
    assert view(owner, f"/settings/copies/{two['copy']}").all(".text, .removed, .added") == ["one", "two", "two"]
    assert form(*EDIT)["content"] == "one"
    assert put(two | {"previous": f"{answer.json['previous']} replaced"}, 2, content="two").status_code == 200
    assert (contents("open"), contents("aside")) == (["two"], ["one"])  # Neither is lost.
    assert put(one, 2, content="one more").status_code == 409
    assert (contents("open"), contents("conflict")) == (["two"], ["one more"])
    send(owner, EDIT[0], two | {"number": "2", "content": "two", "previous": f"{answer.json['previous']} replaced"})
    assert (contents("open"), contents("conflict")) == ([], ["one more"])


def test_either_text_can_be_used_on_the_page_that_compares_them(put, form, owner, post, contents):
    post()
    one, two = form(*EDIT), form(*EDIT)
    put(one, 1, content="one")
    put(two, 1, content="two")
    compare = f"/settings/copies/{two['copy']}?both=1"
    assert [each["href"] for each in view(owner, EDIT[0]).soup.select(".alarms a")] == [compare]  # even after a reload
    facts = "Typed 2026-11-20 12:00 UTC (Firefox). Content (1 word added, 1 word removed)"
    assert view(owner, compare).all(".pair .muted") == [f"{facts} “two”", f"{facts} “one”"]
    assert view(owner, compare).press("Use the older text, keep the newer").soup.select(".alarms a") == []
    assert (contents("open"), contents("aside")) == (["one"], ["two"])
    assert put(two, 1).json["is_untouched"]
    view(owner, compare).press("Use the newer text, keep the older")
    assert (contents("open"), contents("aside")) == (["two"], ["one"])
    assert (put(two, 2, content="two!").status_code, put(one, 1).json["is_untouched"]) == (200, True)
    assert (contents("open"), contents("aside")) == (["two!"], ["one"])
    comparison = view(owner, f"/settings/copies/{one['copy']}?here=1")
    put(form(*EDIT), 1, content="two, continued on a page that was loaded again")
    (problem,) = comparison.press("Use the newer text, keep the older").all(".problem")
    assert problem.startswith("Nothing is chosen yet: the other text")
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


def test_a_new_post_already_saved_by_another_form_is_not_created_twice(
    put, form, owner, client, count, database, clock
):
    fields = form() | {"title": "A", "content": "A"}
    put(fields, 1)
    phone, laptop = (form(f"/settings/posts/new?copy={fields['draft']}") for _ in range(2))
    put(phone, 1, content="phone")
    send(owner, NEW[0], phone | {"content": "phone", "number": "1"})
    assert put(laptop, 1, content="laptop").json["form"] == "/settings/posts/1/edit"
    page = view(owner, "/settings/posts/1/edit")
    asked = "You also changed the post on 2026-11-20 12:00 UTC"
    assert page.all(".problem h2, .removed, .added") == [asked, "phone", "laptop"]
    assert send(owner, NEW[0], laptop | {"content": "laptop"}).status_code == 412
    assert (count(Post), client.get("/v1/posts/1").json["content"]) == (1, "phone")
    clock.now += 30 * 24 * 3600  # A laptop may sleep for so long.
    database.write(idempotency.prune)
    assert copies.post_of(database, laptop["draft"]) == 1


def test_a_field_that_was_not_touched_follows_the_post(put, form, owner, client, post):
    post(title="Hello", content="One.")
    put(form(*EDIT), 1, content="Mine.")
    client.patch("/v1/posts/1", json={"status": "published", "title": "Hi"})
    page = view(owner, "/settings/posts/1/edit")
    assert page.all(".problem") == []
    page.press("Update")
    assert client.get("/v1/posts/1").json.items() >= {"status": "published", "title": "Hi", "content": "Mine."}.items()
    laptop = form("/settings/posts/1/edit", "Update")
    client.patch("/v1/posts/1", json={"content": "From the phone."})
    for number, tags in enumerate(("a", "a,b", "a,b,c"), 1):  # The same form is saved again without being loaded again.
        laptop |= {"tags": tags, "number": str(number)}
        assert send(owner, "/settings/posts/1/edit", laptop).status_code == 303
        answer = put(laptop, number).json
        assert answer["is_merged"]  # The form still shows the content that it was opened with.
        laptop |= {"etag": answer["saved_etag"], "base": answer["saved_base"]}
        stored = client.get("/v1/posts/1").json
        assert (stored["content"], stored["tags"]) == ("From the phone.", tags.split(","))
    put(laptop | {"excerpt": "Short."}, 4)
    assert form("/settings/posts/1/edit", "Update")["content"] == "From the phone."
    assert send(owner, "/settings/posts/1/edit", laptop | {"content": "Mine!"}).status_code == 412


def test_a_post_that_was_changed_elsewhere_is_not_overwritten_and_both_are_shown(owner, client, post):
    post(title="Hello", content="One.\nTwo.\nThree.")
    page = view(owner, "/settings/posts/1/edit")
    client.patch("/v1/posts/1", json={"content": "One.\n2.\nThree.", "tags": ["new"]})
    page = page.press("Save draft", content="One.\nTwo.\nThree!", title="Hi")
    assert (page.status, page.all(".problem h2")) == (412, ["Not saved: the post was also changed elsewhere"])
    assert client.get("/v1/posts/1").json["content"] == "One.\n2.\nThree."
    assert shown(page)["content"] == "One.\nTwo.\nThree!"
    assert page.all("section h3") == ["Content"]  # Only this form changed the title, and only the other one the tags.
    assert (page.all(".removed"), page.all(".added")) == (["2.", "Three."], ["Two.", "Three!"])
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
