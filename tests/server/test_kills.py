"""Kills amid everything at once: what was acknowledged is there, whole, and told to the webhooks."""

import os
import random
import signal
import sqlite3
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from blogapi.clock import rfc3339
from tests.invariants import sound_posts
from tests.server.workers import FAR, Editor, Renamer, Undoer
from tests.service import Server, eventually, free_port

pytestmark = pytest.mark.slow

EVENTS = ["post.created", "post.published", "post.deleted"]  # Nobody wants to be told of the rest.


def work_until_killed(service, workers, victims):
    """Let all work at once for a moment, kill, and have the service run again."""
    stopped = threading.Event()
    with ThreadPoolExecutor(len(workers)) as pool:
        ended = [pool.submit(worker.work, service, stopped) for worker in workers]
        time.sleep(random.uniform(0.2, 0.6))
        if victims == "both":
            service.kill()
        else:
            os.kill(service.worker, signal.SIGKILL)
        stopped.set()
    for future in ended:
        future.result()  # raises what went wrong
    if victims == "both":
        service.start()
    eventually(service.answers)


def unfinished(service):
    """How many deliveries of the first webhook are pending, and how many posts are due soon."""
    query = """
        SELECT (SELECT count(*) FROM delivery WHERE webhook_id = 1 AND state = 'pending')
        + (SELECT count(*) FROM schedule WHERE published_at < ?)
    """
    with closing(sqlite3.connect(service.database)) as connection:
        return connection.execute(query, [rfc3339(time.time() + FAR / 2)]).fetchone()[0]


def restorations(service):
    """How often each post came back from the trash, if all its versions are kept."""
    query = "SELECT CAST(post_id AS TEXT), sum(state = 'restored') FROM revision GROUP BY 1 HAVING count(*) < 50"
    with closing(sqlite3.connect(service.database)) as connection:
        return dict(connection.execute(query))


def test_killed_amid_everything_it_is_whole_and_has_what_it_acknowledged(tmp_path, receiver, scale):
    kills = 3 if scale == 1 else 100
    editors = [Editor(number) for number in range(3)]
    renamer, undoer = Renamer(), Undoer()
    workers = [*editors, renamer, undoer]
    with Server(tmp_path / "blog.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
        for url in (receiver.url, f"http://127.0.0.1:{free_port()}"):
            assert service.request("POST", "/v1/webhooks", {"url": url, "events": EVENTS})[0] == 201
        for number in range(kills):
            work_until_killed(service, workers, ["both", "worker"][number % 2])
            check(service, workers)
        ended = threading.Event()
        ended.set()
        for worker in workers:
            worker.work(service, ended)  # settles what is in doubt
        eventually(lambda: unfinished(service) == 0, 60)
        stored = check(service, workers)
        restored = restorations(service)
    assert set(stored) == renamer.posts.union(undoer.posts, *(editor.posts | editor.scheduled for editor in editors))
    told = defaultdict(set)  # the ids of messages: one may come again, under the same
    for message in receiver.messages:
        told[message.type, message.payload["data"]["post"]["id"]].add(message.id)
    for name in ("deletions", "restored", "scheduled"):
        assert any(getattr(editor, name) for editor in editors)
    for editor in editors:
        each_was_told_once(editor, stored, told)
    assert any(restored.get(number) for number in undoer.posts)
    for number in undoer.posts.keys() & restored.keys():
        assert len(told["post.created", number]) == 1 + restored[number]
        assert len(told["post.deleted", number]) == restored[number]


def check(service, workers):
    """Compare the file with itself, and with what was acknowledged to the workers; return its posts."""
    stored = sound_posts(service.database)
    for worker in workers:
        worker.check(stored)
    return stored


def each_was_told_once(editor, stored, told):
    for number in {*editor.posts, *editor.scheduled, *editor.deleted}:
        came_due = number in editor.scheduled and stored[number]["status"] == "published"
        publications = (number in editor.born_published) + came_due + editor.restored_published[number]
        assert len(told["post.created", number]) == 1 + editor.restored[number]
        assert len(told["post.published", number]) == publications
        assert len(told["post.deleted", number]) == editor.deletions[number]
