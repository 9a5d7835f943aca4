"""The sender's steps: publishing, pruning and sending do not block each other, and pruning does not trust the clock."""

from dataclasses import replace
from functools import partial
from itertools import count as counting

import pytest
from peewee import SQL

from blogapi.api.service import EXTENSION
from blogapi.config import Config
from blogapi.posts import storage as posts
from blogapi.server.background import Background
from blogapi.storage.models import Post, Revision
from tests.conftest import Clock
from tests.webhooks.fixtures import take_turn

MINUTE, HOUR, DAY = 60, 3600, 24 * 3600


def rename(database, table, name):
    database.write(lambda tx: tx.execute(SQL(f"ALTER TABLE {table} RENAME TO {name}")))


@pytest.mark.sqlite
@pytest.mark.parametrize("table", ["post", "revision", "idempotency"])
def test_a_failure_to_publish_or_to_prune_does_not_hold_back_messages(
    webhook, post, turn, receiver, database, table, clock, caplog
):
    webhook(events=["post.created"])
    post()
    clock.now += HOUR
    rename(database, table, "other")
    turn()
    assert len(receiver.messages) == 1
    assert caplog.messages == [f"background work waits for the database: no such table: {table}"]


def test_an_unexpected_error_in_pruning_does_not_hold_back_messages(
    background, turn, webhook, post, receiver, clock, caplog
):
    background.config = Config(keep_days=999_999)
    webhook(events=["post.created"])
    post()
    clock.now += HOUR
    turn()
    assert len(receiver.messages) == 1
    assert caplog.messages == ["unexpected error in background work"]


@pytest.mark.sqlite
def test_results_that_cannot_be_recorded_do_not_hold_back_publications(
    client, attempt, background, database, clock, caplog
):
    attempt()
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": "2026-11-20T13:00:00Z"})
    rename(database, "delivery", "other")
    clock.now += HOUR
    background.turn()
    assert database.row(Post.select(Post.status)) == ("published",)
    assert caplog.messages == ["background work waits for the database: no such table: delivery"]


def test_a_long_pruning_is_done_in_parts(app, database, webhook, post, receiver, clock, count):
    config = Config(keep_days=0, webhook_private=True)
    background = Background(replace(app.extensions[EXTENSION], config=config), monotonic=partial(next, counting()))
    webhook(events=["post.created"])
    post()
    database.write(copy_versions, 120)
    clock.now += DAY
    take_turn(background)
    assert len(receiver.messages) == 1
    assert count(Revision) > 0
    while count(Revision):
        background.turn()


def copy_versions(tx, number):
    """Store many versions of the first post."""
    document = posts.find(tx, 1).decode()
    version = {"post_id": 1, "since": tx.now, "author": "", "until": tx.now, "replaced_by": "", "document": document}
    version["state"] = "replaced"
    tx.execute(Revision.insert_many([version | {"version": each} for each in range(1, number + 1)]))


@pytest.mark.both_engines
@pytest.mark.parametrize("change", [{}, {"title": "Changed"}], ids=["created", "changed"])
def test_a_clock_that_falls_behind_a_published_post_is_logged_once(app, client, post, clock, caplog, change):
    monotonic = Clock(1000)
    background = Background(app.extensions[EXTENSION], monotonic=monotonic)
    post(status="published")
    clock.now += MINUTE
    client.patch("/v1/posts/1", json=change)
    post(status="draft")
    for jump in (0, -6 * HOUR, MINUTE, 6 * HOUR, MINUTE):
        clock.now += jump
        monotonic.now += MINUTE
        background.turn()
    seconds = "12:01:00Z" if change else "12:00:00Z"
    assert caplog.messages == [
        f"the clock is behind: it is 2026-11-20T06:01:00Z, but a post is from 2026-11-20T{seconds}",
        "the clock is no longer behind the posts",
    ]


@pytest.fixture
def pruned(client, app, clock, count, post):
    """Store a version of a post, let time pass for the background work, and return whether the version is gone."""
    post()
    client.patch("/v1/posts/1", json={"title": "Another title"})
    monotonic = Clock(1000)
    background = Background(app.extensions[EXTENSION], monotonic=monotonic)

    def after(seconds, jump=0):
        clock.now += seconds + jump
        monotonic.now += seconds
        background.turn()
        return count(Revision) == 0

    return after


@pytest.mark.parametrize(
    ("turns", "is_gone"),
    [
        ([(2 * HOUR, 0), (MINUTE, 31 * DAY), (MINUTE, -31 * DAY), (2 * HOUR, 0)], False),  # ahead for a minute
        ([(MINUTE, 31 * DAY), (MINUTE, -31 * DAY), (2 * HOUR, 0)], False),  # ahead when the service starts
        ([(MINUTE, 31 * DAY), (59 * MINUTE, 0)], False),
        ([(MINUTE, 31 * DAY), (59 * MINUTE, 0), (MINUTE, 0)], True),
    ],
)
def test_only_a_clock_that_has_been_steady_for_an_hour_prunes_the_history(pruned, turns, is_gone):
    assert [pruned(*turn) for turn in turns] == [False] * (len(turns) - 1) + [is_gone]
