"""The history of posts: revisions and the trash, what happens to them over time, and how much is kept."""

import re

import pytest
from peewee import SQL

from blogapi import documents
from blogapi.paging import Cursor
from blogapi.posts import history
from blogapi.posts import storage as posts
from blogapi.storage.engine import Compiled, Reader
from blogapi.storage.errors import Damaged, DoesNotExist
from blogapi.storage.models import Author, Revision
from blogapi.wings.history import revisions
from blogapi.wings.history.undo import undo
from tests.cases import cases
from tests.conftest import NOON

DAY = 24 * 3600


@pytest.fixture
def change(database):
    def change(post_id, by="first", **changes):
        return documents.load(database.write(posts.change, post_id, changes, Author(by)).document)

    return change


@pytest.fixture
def delete(database):
    return lambda post_id, by="first", **options: database.write(posts.delete, post_id, Author(by), **options)


@pytest.fixture
def kept(database):
    """The stored versions of a post, newest first, and who replaced each."""

    def kept(post_id, limit=100):
        return [(each.version, each.author) for each in revisions.page(database, post_id, limit).items]

    return kept


# Revisions


def test_publishing_a_scheduled_post_keeps_no_version(database, add, change, kept, clock):
    post_id = add(status="scheduled", published_at="2026-11-20T12:01:00Z")
    clock.now += 60
    database.write(posts.publish_due)
    assert kept(post_id) == []
    change(post_id, title="B")
    assert documents.load(revisions.get(database, post_id, 1))["status"] == "published"


def test_fifty_versions_are_kept_and_the_oldest_are_deleted_first(database, add, change, kept):
    post_id = add()
    for number in range(60):
        change(post_id, content=f"{number}")
    assert [version for version, _ in kept(post_id)] == list(range(60, 10, -1))
    with pytest.raises(DoesNotExist):
        revisions.get(database, post_id, 10)


# The trash


def test_a_restored_post_is_a_draft_if_its_time_has_passed_and_has_another_slug_if_its_own_is_taken(
    database, add, delete, clock
):
    post_id = add(status="scheduled", published_at="2026-11-20T12:01:00Z", slug="x" * 100)
    delete(post_id)
    add(slug="x" * 100)
    clock.now += 60
    database.write(revisions.restore_deleted, post_id, Author("first"))
    restored = documents.load(posts.get(database, post_id))
    assert (restored["status"], restored["slug"], "published_at" in restored) == ("draft", "x" * 90, False)


# Damage


@pytest.fixture(params=[None, "", "{"])
def damage_first(damage, request):
    """Damage the version that was stored first."""
    return lambda: damage("revision", "document", request.param)


@pytest.mark.sqlite
def test_a_damaged_version_hides_no_other_and_an_undo_names_it(database, add, change, kept, damage_first, clock):
    damaged, whole = add(), add()
    clock.now += 60
    for post_id in (damaged, damaged, whole):
        change(post_id, content=f"{clock.now}")
        clock.now += 1
    damage_first()
    assert kept(damaged) == [(2, "first")]
    for dry_run in (True, False):
        done = [each[1:] for each in undo(database, "2026-11-20T12:01:00Z", dry_run=dry_run)]
        assert done == [("A", "changed back", ""), ("A", "left alone", "it is damaged")]


@pytest.mark.sqlite
def test_a_damaged_post_in_the_trash_hides_no_other_and_can_be_deleted(database, add, delete, damage_first):
    first, damaged, last = add(), add(), add()
    for post_id in (damaged, first, last):
        delete(post_id)
    damage_first()
    page = revisions.trash(database, 1)
    assert [each.post_id for each in page.items] == [last]
    assert [each.post_id for each in revisions.trash(database, 2, page.next).items] == [first]
    with pytest.raises(Damaged):
        database.write(revisions.restore_deleted, damaged, Author("first"))
    database.write(revisions.purge, damaged)
    with pytest.raises(DoesNotExist):
        revisions.get_in_trash(database, damaged)


# Time


def pruned(database, days):
    """Prune until there is nothing left to delete; return how many versions were deleted."""
    return sum(iter(lambda: database.write(history.prune, days), 0))


def test_versions_are_pruned_after_some_days(database, add, change, delete, kept, count, clock):
    old, restored, new = add(), add(), add()
    change(old, content="two")
    delete(restored)
    database.write(revisions.restore_deleted, restored, Author("first"))
    clock.now = NOON + 30 * DAY - 1
    change(new, content="two")
    delete(old)
    assert pruned(database, 30) == 0
    clock.now += 1
    assert pruned(database, 30) == 2
    assert (kept(new), count(Revision)) == ([(1, "first")], 2)
    assert [each.post_id for each in revisions.trash(database, 100).items] == [old]
    assert (pruned(database, 0), count(Revision)) == (2, 0)


# Size


def test_deleting_and_restoring_again_and_again_keeps_fifty_versions(database, add, delete, count):
    post_id = add()
    for _ in range(60):
        delete(post_id)
        database.write(revisions.restore_deleted, post_id, Author("first"))
    assert count(Revision) == history.MAX_REVISIONS
    delete(post_id)
    assert documents.load(revisions.get_in_trash(database, post_id))["content"] == "one"


@pytest.mark.sqlite  # PostgreSQL deletes them within a single step.
def test_large_versions_are_pruned_some_at_a_time(database, add, change, count, clock):
    large = "x" * 1_000_000
    post_id = add(content=large)
    for number in range(40):
        change(post_id, content=f"{number}{large[1:]}")
    clock.now = NOON + 31 * DAY
    counts = []
    while count(Revision):
        counts.append(database.write(history.prune, 30))
    assert sum(counts) == 40
    assert len(counts) > 1


@pytest.mark.parametrize("permanent", [True, False])
def test_large_versions_of_a_post_deleted_for_good_are_deleted_some_at_a_time(
    database, add, change, delete, kept, count, clock, monkeypatch, permanent
):
    monkeypatch.setattr(history, "PRUNING_SECONDS", -1)
    post_id, other = add(), add()
    for number in range(5):
        change(post_id, content=f"{number}")
    change(other, content="two")
    delete(post_id, permanent=permanent)
    if not permanent:
        database.write(revisions.purge, post_id)
    assert (count(Revision), revisions.trash(database, 100).items) == (5, [])
    with pytest.raises(DoesNotExist):
        revisions.get_in_trash(database, post_id)
    clock.now += DAY - 1
    assert [database.write(history.prune_purged) for _ in range(5)] == [1, 1, 1, 1, 0]
    assert (count(Revision), kept(other)) == (1, [(1, "first")])


# Plans


class Recorder(Reader):
    """Runs read queries, and records every query with its values."""

    def __init__(self, engine, clock):
        super().__init__(engine, clock)
        self.queries = []

    def row(self, query, **values):
        self.queries.append((query, values))
        return super().row(query, **values)

    def rows(self, query, **values):
        self.queries.append((query, values))
        return super().rows(query, **values)

    def execute(self, query):
        self.queries.append((query, {}))
        return 0


@pytest.fixture
def steps(database, clock):
    """Return the steps in which the engine runs the queries of an operation."""
    explain = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}[database.engine.dialect]
    if database.engine.dialect == "postgresql":  # which sorts a few rows rather than read an index in its order
        database.rows(SQL("SELECT set_config('enable_sort', 'off', false)"))

    def steps(operation, *arguments):
        recorder = Recorder(database.engine, clock)
        operation(recorder, *arguments)
        assert recorder.queries
        for query, values in recorder.queries:
            statement = database.engine.statement(query)
            text = f"{explain} {statement.text}"
            for row in database.rows(Compiled(text) if values else SQL(text, statement.values), **values):
                yield str(row[-1])

    return steps


@pytest.fixture
def long(add, change, delete):
    """Three posts in the trash, and three changes of post 4."""
    for _ in range(3):
        delete(add(slug="a"))
    post_id = add(slug="a")
    for number in range(3):
        change(post_id, content=f"{number}")


@cases(
    ("operation", "arguments"),
    (revisions.page, (4, 10)),
    (revisions.page, ("a", 10, 2)),
    (revisions.get, ("a", 1)),
    (revisions.trash, (10,)),
    (revisions.trash, (10, Cursor("2026-11-20T12:00:00Z", 2))),
    (revisions.get_in_trash, (1,)),
    (history.prune, (0,)),
    (lambda *arguments: list(undo(*arguments)), ("2026-11-20T12:00:00Z", "first", True)),
)
def test_no_query_of_the_history_scans_or_sorts(long, steps, operation, arguments):
    for step in steps(operation, *arguments):
        assert not re.search("SCAN|TEMP|Seq Scan|Sort", step), step
