"""Undo: every post returns to its state at a given time."""

import pytest

from blogapi.posts import storage as posts
from blogapi.storage.models import Author
from blogapi.wings.history import revisions
from tests.conftest import NOON
from tests.history.conftest import CHANGED, DELETED, RESTORED, forget_everything
from tests.invariants import sound_posts


@pytest.mark.both_engines
def test_changes_deletions_and_creations_are_undone_and_other_posts_stay_as_they_are(blog, database):
    changed, deleted, untouched = blog.add(status="published"), blog.add(excerpt="b"), blog.add()
    before, document = blog.state(), posts.get(database, untouched)
    blog.later()
    blog.change(changed, title="B", content="two", tags=["b"], slug="b", status="archived")
    blog.change(changed, content="three")
    blog.delete(deleted)
    gone = blog.add(by="bad")
    blog.delete(gone)  # It was created since, and stays in the trash.
    created = blog.add(by="bad")
    fields = {"title": "A", "content": "one", "tags": []}
    importer, created_at = Author("import"), "2019-01-01T00:00:00Z"
    imported = blog.done(database.write(posts.put, "old", fields, importer, created_at=created_at)).id
    assert blog.undo(key="import", dry_run=True) == {imported: DELETED}
    done = {imported: DELETED, created: DELETED, deleted: RESTORED, changed: CHANGED}
    assert blog.undo(dry_run=True) == blog.undo() == done
    assert blog.state() == (before[0], [gone, created, imported])
    assert posts.get(database, untouched) == document


def test_an_undo_can_be_undone(blog):
    changed, deleted = blog.add(), blog.add()
    blog.later()
    blog.change(changed)
    blog.delete(deleted)
    created = blog.add(by="bad")
    before = blog.state()
    blog.undo()
    blog.done(None)
    assert blog.undo(since="2026-11-20T12:10:03Z") == {created: RESTORED, deleted: DELETED, changed: CHANGED}
    assert blog.state() == before


@pytest.mark.parametrize(
    ("before", "since", "done"),
    [([], ["change", "delete"], RESTORED), ([], ["delete", "restore"], None), (["delete"], ["restore"], DELETED)],
    ids=["changed and deleted", "deleted and restored", "restored"],
)
def test_a_post_returns_to_its_state_before_several_changes(blog, before, since, done):
    post_id = blog.add()
    for change in before:
        getattr(blog, change)(post_id)
    then = blog.state()
    blog.later()
    for change in since:
        getattr(blog, change)(post_id)
    assert (blog.undo(), blog.state()) == (({post_id: done} if done else {}), then)


# One key


def test_only_the_changes_of_the_key_are_undone_and_not_earlier_ones_of_others(blog):
    mine, theirs, both = blog.add(), blog.add(), blog.add()
    blog.later()
    blog.change(theirs, by="good")
    blog.change(both, by="good", content="better")
    before = blog.state()
    blog.change(mine)
    blog.change(both, content="worse")
    assert blog.undo(key="bad") == {both: CHANGED, mine: CHANGED}
    assert blog.state() == before
    assert blog.undo(key="bad") == {}


def test_a_post_that_another_key_has_changed_since_is_left_alone_and_reported(blog):
    changed, deleted = blog.add(), blog.add()
    blog.later()
    created = blog.add(by="bad")
    for post_id in (changed, created):
        blog.change(post_id, by="bad", content="two")
        blog.change(post_id, by="good", content="three")
    blog.change(deleted)
    blog.delete(deleted, by="good")
    before = blog.state()
    left = ("left alone", "good has changed it since")
    assert blog.undo(key="bad") == {changed: left, created: left, deleted: left}
    assert blog.state() == before


# What cannot be restored exactly


@pytest.mark.both_engines
@pytest.mark.parametrize("slugs", [("a", "b"), ("a", "b", "c"), ("a", "a-2"), ("a-2", "a")])
def test_posts_that_swapped_slugs_get_their_own_back(blog, slugs):
    exchanged = [blog.add(slug=slug) for slug in slugs]
    before = blog.state()
    blog.later()
    blog.change(exchanged[0], slug="d")
    for post_id, slug in zip(exchanged[1:], slugs, strict=False):
        blog.change(post_id, slug=slug)
    blog.change(exchanged[0], slug=slugs[-1])
    after, then = blog.state(), "2026-11-20T12:15:00Z"
    blog.later(900)
    assert blog.undo() == dict.fromkeys(exchanged, CHANGED)
    assert blog.state() == before
    assert blog.undo() == {}
    assert blog.undo(since=then) == dict.fromkeys(exchanged, CHANGED)
    assert blog.state() == after


def test_a_post_whose_slug_is_taken_gets_a_number_which_a_dry_run_does_not_foresee(blog, database):
    changed, deleted, moved, exchanged = (blog.add(slug=slug) for slug in "abcd")
    blog.later()
    blog.change(changed, slug="e", content="two")
    blog.delete(deleted)
    for slug in "ab":
        blog.add(by="good", slug=slug)
    blog.change(moved, slug="f")
    spam = blog.add(by="bad", slug="c")  # It will be deleted, which frees this slug.
    blog.change(exchanged, slug="g")
    blog.change(moved, slug="d")
    blog.change(exchanged, slug="f")
    before = blog.state()
    told = {moved: CHANGED, exchanged: CHANGED, spam: DELETED}
    assert blog.undo(key="bad", dry_run=True) == told | {changed: CHANGED, deleted: RESTORED}
    assert blog.state() == before
    why = {post: f"its slug {slug} is taken, so it now has {slug}-2" for post, slug in ((changed, "a"), (deleted, "b"))}
    inexact = {changed: ("changed back", why[changed]), deleted: ("restored", why[deleted])}
    assert blog.undo(key="bad") == told | inexact
    kept = [revisions.page(database, post_id, 50) for post_id in (changed, deleted)]
    assert blog.undo(key="bad") == {post_id: ("left alone", reason) for post_id, reason in why.items()}
    assert [revisions.page(database, post_id, 50) for post_id in (changed, deleted)] == kept


def test_a_slug_stays_taken_if_its_post_is_left_alone(blog):
    mine, theirs = blog.add(slug="a"), blog.add(slug="b")
    blog.later()
    blog.change(mine, slug="c")
    blog.change(theirs, slug="a")
    blog.change(theirs, by="good")
    assert blog.undo(key="bad") == {
        mine: ("changed back", "its slug a is taken, so it now has a-2"),
        theirs: ("left alone", "good has changed it since"),
    }


def test_a_new_post_with_more_changes_than_are_kept_is_deleted(blog):
    blog.later()
    post_id = blog.add()
    for number in range(51):
        blog.change(post_id, content=f"{number}")
    assert blog.undo(key="bad") == {post_id: ("left alone", "its state at that time is no longer kept")}
    assert blog.undo() == {post_id: ("moved to the trash", "")}


def test_a_post_whose_change_kept_no_version_is_left_alone_and_reported(blog, forgetful):
    changed, deleted = blog.add(), blog.add()
    blog.later()
    forgetful.write(posts.change, changed, {"content": "two"}, Author("bad"))
    forgetful.write(posts.delete, deleted, Author("bad"))
    assert blog.undo() == {changed: ("left alone", "its state at that time is no longer kept")}


def test_a_post_that_has_come_due_stays_published_when_it_is_changed_back(blog, clock, config):
    post_id = blog.add(status="scheduled", published_at="2026-11-20T12:20:00Z")
    blog.later()
    blog.change(post_id, title="B", tags=["b"])
    clock.now = NOON + 1300
    assert blog.undo() == {post_id: CHANGED}
    post = sound_posts(config.database)[str(post_id)]
    assert (post["title"], post["tags"]) == ("A", ["a"])
    assert (post["status"], post["published_at"]) == ("published", "2026-11-20T12:20:00Z")


def test_of_two_posts_that_want_the_same_slug_the_last_one_deleted_gets_it(blog):
    first = blog.add(slug="x")
    blog.later()
    blog.delete(first)
    second = blog.add(by="good", slug="x")
    blog.delete(second)
    assert blog.undo(key="bad") == {second: RESTORED, first: ("restored", "its slug x is taken, so it now has x-2")}


@pytest.mark.both_engines
def test_posts_that_were_deleted_for_good_since_then_are_reported_by_their_ids(blog, database, clock):
    before, by_script, from_trash = blog.add(), blog.add(), blog.add()
    database.write(posts.delete, before, Author("bad"), permanent=True)
    blog.later()
    database.write(posts.delete, by_script, Author("bad"), permanent=True)
    blog.delete(from_trash)
    database.write(revisions.purge, from_trash)
    gone = ("left alone", "it was deleted for good")
    assert blog.undo(dry_run=True) == blog.undo(key="bad") == {by_script: gone, from_trash: gone}
    forget_everything(database, clock)
    assert blog.undo() == {}


def test_former_slugs_are_restored(blog, config):
    a = blog.add(slug="a", status="published")
    b = blog.add(slug="b", status="published", former_slugs=["x"])
    before = blog.state()
    blog.later()
    blog.change(a, slug="c")
    blog.change(b, former_slugs=[])
    blog.change(a, former_slugs=["x"])
    new = blog.add(by="bad", slug="a")
    blog.later(900)
    assert blog.undo() == {a: ("changed back", ""), b: ("changed back", ""), new: ("moved to the trash", "")}
    assert blog.state() == (before[0], [new])
    sound_posts(config.database)


@pytest.mark.both_engines
def test_a_post_waits_for_its_slug_if_another_goes_back_to_its_former_one(blog, config):
    a, b = blog.add(slug="a"), blog.add(slug="b", status="published")
    before = blog.state()
    blog.later()
    blog.change(a, slug="c")
    blog.change(b, slug="a")
    blog.later()
    blog.change(a, title="B")
    assert blog.undo(dry_run=True) == blog.undo() == {a: CHANGED, b: CHANGED}
    assert blog.state() == before
    sound_posts(config.database)


def test_a_former_slug_that_another_post_has_taken_stays_there(blog, config):
    post = blog.add(slug="a", status="published", former_slugs=["x", "y"])
    blog.later()
    blog.change(post, former_slugs=[])
    blog.add(by="good", slug="x")
    assert blog.undo("bad") == {post: ("changed back", "its former slug x is taken")}
    assert blog.state()[0][1]["former_slugs"] == ["y"]
    sound_posts(config.database)
