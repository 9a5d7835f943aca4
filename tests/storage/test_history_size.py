"""The size of the history: how much is kept, and how much of it goes at once."""

import pytest
from peewee import SQL

from blogapi.storage import documents, history, posts, revisions
from blogapi.storage.errors import NeedsThread
from blogapi.storage.models import Revision
from tests.conftest import NOON

DAY = 24 * 3600
LARGE = "x" * 1_000_000


@pytest.fixture
def add(database):
    def add(content="one"):
        fields = {"title": "A", "content": content, "status": "draft", "tags": ["a"]}
        return database.write(posts.add, fields, "first").id

    return add


def test_deleting_and_restoring_again_and_again_keeps_fifty_versions(database, add, count):
    post_id = add()
    for _ in range(60):
        database.write(posts.delete, post_id, "first")
        database.write(revisions.restore_deleted, post_id, "first")
    assert count(Revision) == history.MAX_REVISIONS
    database.write(posts.delete, post_id, "first")
    assert documents.load(revisions.find_in_trash(database, post_id))["content"] == "one"


@pytest.mark.sqlite  # PostgreSQL deletes them within one step's time.
def test_large_versions_are_pruned_some_at_a_time(database, add, count, clock):
    post_id = add(LARGE)
    for number in range(40):
        database.write(posts.change, post_id, {"content": f"{number}{LARGE[1:]}"}, "first")
    clock.now = NOON + 31 * DAY
    pruned = []
    while count(Revision):
        pruned.append(database.write(history.prune, 30))
    assert sum(pruned) == 40
    assert len(pruned) > 1


def test_many_versions_are_forgotten_in_a_thread(database, add, count):
    post_id = add()
    for number in range(5):
        database.write(posts.change, post_id, {"content": f"{number}"}, "first")
    with pytest.raises(NeedsThread):
        database.write_at_once(history.forget, post_id)
    database.write(posts.delete, post_id, "first", permanent=True)
    assert count(Revision) == 0


@pytest.mark.sqlite
def test_a_damaged_post_that_is_deleted_keeps_no_versions(database, add, count):
    post_id = add()
    database.write(posts.change, post_id, {"content": "two"}, "first")
    database.write(lambda tx: tx.execute(SQL("UPDATE post SET document = ''")))
    database.write(posts.delete, post_id, "first", permanent=True)
    assert count(Revision) == 0
