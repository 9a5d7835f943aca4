"""The server is killed during all kinds of requests. What it acknowledged is intact, and webhooks receive it."""

import os
import random
import signal
import time

import pytest

from blogapi.clock import rfc3339
from tests.databases import execute
from tests.invariants import sound_posts
from tests.server.workers import EVENTS, FAR, Editor, Renamer, Undoer, all_at_work, check, settle, told
from tests.service import Server, eventually, free_port

pytestmark = pytest.mark.slow


# The number of pending deliveries of the first webhook plus posts due soon
UNFINISHED = """
    SELECT (SELECT count(*) FROM delivery WHERE webhook_id = 1 AND state = 'pending')
    + (SELECT count(*) FROM post WHERE status = 'scheduled' AND published_at < ?)
"""
# How often each post came back from the trash, if all its versions are kept
RESTORED = "SELECT CAST(post_id AS TEXT), sum(state = 'restored') FROM revision GROUP BY 1 HAVING count(*) < 50"


def test_after_kills_it_serves_again_within_4_s_and_has_everything_it_acknowledged(tmp_path, receiver, scale):
    kills = 3 if scale == 1 else 100
    editors = [Editor(number) for number in range(3)]
    renamer, undoer = Renamer(), Undoer()
    workers = [*editors, renamer, undoer]
    with Server(tmp_path / "blog.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
        begun = time.monotonic()
        service.stop()
        service.start()
        most = max(4, 3 * (time.monotonic() - begun))  # on a busy machine, three times as long as a restart takes there
        for url in (receiver.url, f"http://127.0.0.1:{free_port()}"):
            assert service.request("POST", "/v1/webhooks", {"url": url, "events": EVENTS})[0] == 201
        for number in range(kills):
            with all_at_work(workers, [service]):
                time.sleep(random.uniform(0.2, 0.6))
                worker, master = service.worker, service.process.pid
                for process in ([worker], [master], [master, worker])[number % 3]:
                    os.kill(process, signal.SIGKILL)
            killed = time.monotonic()
            if number % 3:
                service.process.wait()
                service.start()
            eventually(service.answers, most)
            assert time.monotonic() < killed + most
            check(workers, sound_posts(service.database))
        settle(workers, service)
        eventually(lambda: execute(service.database, UNFINISHED, rfc3339(time.time() + FAR / 2)) == [(0,)], 60)
        stored = check(workers, sound_posts(service.database))
        restored = dict(execute(service.database, RESTORED))
    assert set(stored) == renamer.posts.union(undoer.posts, *(editor.posts | editor.scheduled for editor in editors))
    messages = told(receiver)
    for name in ("deletions", "restored", "scheduled"):
        assert any(getattr(editor, name) for editor in editors)
    for editor in editors:
        editor.check_messages(messages, stored)
    assert any(restored.get(number) for number in undoer.posts)
    for number in undoer.posts.keys() & restored.keys():
        assert len(messages["post.created", number]) == 1 + restored[number]
        assert len(messages["post.deleted", number]) == restored[number]
