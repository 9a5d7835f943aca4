"""Undo: the tags of posts return to their state at a given time."""

from blogapi.clock import rfc3339
from blogapi.posts import storage as posts
from blogapi.storage.models import Author, Retagging
from blogapi.wings.tags import storage as tags
from tests.history.conftest import CHANGED, forget_everything


def test_the_deletion_renaming_and_merging_of_a_tag_are_undone(blog, database):
    posts_of = [blog.add(tags=["Käse", "a"]), blog.add(tags=["b", "käse", "a"]), blog.add(tags=["b"])]
    in_trash = blog.add(tags=["a"])
    blog.delete(in_trash, by="good")
    before = blog.state()
    tags_before = tags.page(database, 9).items
    blog.later()
    blog.retag(tags.delete, "a")
    blog.retag(tags.rename, "käse", "Cheese", False)
    blog.retag(tags.rename, "b", "cheese", True)
    assert tags.page(database, 9).items == [("cheese", 3)]
    assert blog.undo(key="good") == {}
    assert blog.undo(dry_run=True) == blog.undo() == dict.fromkeys(reversed(posts_of), CHANGED)
    assert (blog.state(), tags.page(database, 9).items) == (before, tags_before)
    assert blog.undo() == {}


def test_a_tag_returns_even_to_posts_that_were_changed_later(blog):
    changed, deleted = blog.add(tags=["a", "b"]), blog.add(tags=["a"])
    before = blog.state()
    blog.later()
    blog.change(changed, title="B")
    blog.retag(tags.delete, "a")
    blog.retag(tags.rename, "b", "c", False)
    blog.change(changed, title="C")
    blog.delete(deleted)
    blog.undo()
    assert blog.state() == before


def test_only_the_tag_changes_of_the_key_are_undone(blog):
    theirs, both = blog.add(tags=["a", "b"]), blog.add(tags=["a"])
    blog.later()
    blog.change(theirs, by="good", title="B")
    blog.retag(tags.delete, "a")
    blog.change(both, by="good", title="B")
    left = "good has changed it since; its tags stay renamed or removed"
    assert blog.undo(key="bad") == {theirs: CHANGED, both: ("left alone", left)}
    shown, _ = blog.state()
    assert [(post["title"], post["tags"]) for post in shown] == [("B", []), ("B", ["a", "b"])]


def test_an_undo_back_to_between_tag_changes_restores_the_state_of_that_time(blog, clock):
    blog.add(tags=["a", "b", "c"])
    blog.later()
    blog.retag(tags.delete, "a")
    since, before = rfc3339(clock.now), blog.state()
    blog.retag(tags.delete, "b")
    blog.retag(tags.delete, "c")
    blog.undo(since=since)
    assert blog.state() == before


def test_former_tags_are_kept_only_with_a_history_and_forgotten_with_it(blog, database, forgetful, clock, count):
    post_id = blog.add(tags=["a", "b", "c"])
    forgetful.write(tags.delete, "a", Author("bad"))
    assert count(Retagging) == 0
    blog.retag(tags.delete, "b")
    assert count(Retagging) == 1
    database.write(posts.delete, post_id, Author("bad"), permanent=True)
    assert count(Retagging) == 0
    blog.add(tags=["b"])
    blog.retag(tags.delete, "b")
    forget_everything(database, clock)
    assert count(Retagging) == 0
