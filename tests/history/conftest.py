"""Fixtures for a blog with changes made with several keys, and for undoing these changes."""

import pytest

from blogapi import documents
from blogapi.paging import ListQuery
from blogapi.posts import history, lists
from blogapi.posts import storage as posts
from blogapi.storage.models import Author
from blogapi.wings.history import revisions
from blogapi.wings.history.undo import undo
from tests.conftest import NOON

SINCE = "2026-11-20T12:10:00Z"
CHANGED, RESTORED, DELETED = ("changed back", ""), ("restored", ""), ("moved to the trash", "")


@pytest.fixture
def blog(database, clock):
    """A blog with changes made with several keys: before SINCE until `later` is called, then one change per second."""

    class Blog:
        def add(self, by="good", **fields):
            new = {"title": "A", "content": "one", "status": "draft", "tags": ["a"]} | fields
            return self.done(database.write(posts.add, new, Author(by)).id)

        def change(self, post_id, by="bad", **changes):
            return self.done(database.write(posts.change, post_id, changes or {"content": "two"}, Author(by)))

        def delete(self, post_id, by="bad"):
            return self.done(database.write(posts.delete, post_id, Author(by)))

        def restore(self, post_id, by="bad"):
            return self.done(database.write(revisions.restore_deleted, post_id, Author(by)))

        def retag(self, change, *arguments, by="bad"):
            return self.done(database.write(change, *arguments, Author(by)))

        def done(self, result):
            clock.now += 1
            return result

        def later(self, seconds=600):
            clock.now = max(clock.now, NOON + seconds)

        def undo(self, key=None, since=SINCE, **options):
            """Undo one second later; return the results by post id."""
            done = {each.post_id: each[2:] for each in undo(database, since, key, **options)}
            clock.now += 1
            return done

        def state(self):
            """All posts, without their updated_at, and those in the trash."""
            shown = map(documents.load, lists.page(database, ListQuery(1000)).items)
            trash = sorted(each.post_id for each in revisions.trash(database, 1000).items)
            return [{name: value for name, value in post.items() if name != "updated_at"} for post in shown], trash

    return Blog()


@pytest.fixture
def forgetful(own_app):
    """The same database while BLOGAPI_KEEP_DAYS is 0."""
    return own_app(keep_days=0).extensions["blogapi"].database


def forget_everything(database, clock):
    """Let 31 days pass, and prune everything that is kept for 30 days."""
    clock.now += 31 * 24 * 3600
    while database.write(history.prune, 30):
        pass
