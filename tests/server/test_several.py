"""Several services, each with several processes, on one PostgreSQL database."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from blogapi.clock import rfc3339
from blogapi.engines import engine_for
from blogapi.postgresql.engine import LEADER, SET_UP
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Post
from tests.invariants import sound_posts
from tests.postgresql.programs import PostgresqlServer
from tests.server.conftest import together
from tests.server.workers import EVENTS, FAR, Editor, Undoer, all_at_work, check, settle, told
from tests.service import Server, assert_100_of_150_are_served, assert_writes_at_once_are_exact, eventually

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("several")]
ESTABLISHED = "01"  # in /proc/net/tcp


@pytest.fixture(scope="module")
def two(postgresql_server, tmp_path_factory):
    """Two services that tests share, on a database with posts of other tests."""
    with together(postgresql_server.create("two"), tmp_path_factory.mktemp("two")) as start:
        yield [start(), start()]


def subscribe(service, receiver, *events):
    """Create the only webhook."""
    for webhook in service.request("GET", "/v1/webhooks")[2]:
        assert service.request("DELETE", f"/v1/webhooks/{webhook['id']}")[0] == 204
    assert service.request("POST", "/v1/webhooks", {"url": receiver.url, "events": events})[0] == 201


def test_a_write_acknowledged_by_one_process_is_visible_in_all(two):
    for number in range(20):
        status, headers, post = two[number % 2].request("POST", "/v1/posts", {"title": "A", "content": f"{number}"})
        assert status == 201
        for service in two * 2:
            assert service.request("GET", headers["Location"])[2] == post
            assert service.request("GET", "/v1/posts?limit=1")[2] == [post]


def test_writes_sent_to_all_at_once_are_as_exact_as_one_after_the_other(two):
    before = len(sound_posts(two[0].database))
    assert len(assert_writes_at_once_are_exact(two)) == 40
    assert len(sound_posts(two[0].database)) == before + 41


def test_of_150_concurrent_requests_to_two_services_100_are_served(serve_together):
    two = [serve_together(BLOGAPI_RATE_LIMIT=100), serve_together(BLOGAPI_RATE_LIMIT=100)]
    assert_100_of_150_are_served(two)


def test_a_revoked_key_stops_working_everywhere_at_once(two):
    key = two[0].blogapi("keys", "create", "mine").stdout.strip()
    assert [service.request("GET", "/v1/posts", Authorization=f"Bearer {key}")[0] for service in two] == [200, 200]
    two[0].blogapi("keys", "revoke", "mine")
    assert [service.request("GET", "/v1/posts", Authorization=f"Bearer {key}")[0] for service in two] == [401, 401]


def leading_worker(services):
    """The process id of the worker that sends webhooks: its connection has the lock of the leader."""
    query = (
        "SELECT client_port FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE datname = current_database()"
        " AND locktype = 'advisory' AND objid = %s AND granted"
    )
    leaders = []

    def is_found():  # The lock of a killed worker stays until the database notices.
        ports = [f":{port:04X}" for (port,) in connection.execute(query, [LEADER])]
        rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()]
        sockets = {f"socket:[{row[9]}]" for row in rows if row[1][-5:] in ports and row[3] == ESTABLISHED}
        pids = [pid for service in services for pid in service.workers]
        leaders.extend(int(pid) for pid in pids if sockets.intersection(open_files(pid)))
        return leaders

    with psycopg.connect(services[0].database, autocommit=True) as connection:
        eventually(is_found)
    return leaders[0]


def open_files(pid):
    """The names of the files that a process has open; none if it has ended."""
    with suppress(OSError):
        return [os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()]
    return []


def test_a_scheduled_post_is_published_once_and_its_event_sent_once(two, receiver):
    subscribe(two[0], receiver, "post.published")
    scheduled = set()
    for number in range(5):
        body = {"status": "scheduled", "published_at": rfc3339(time.time() + 4), "title": "Later", "content": "x"}
        status, _, post = two[number % 2].request("PUT", f"/v1/posts/by-slug/later-{number}", body)
        assert status == 201
        scheduled.add(post["id"])
    eventually(lambda: len(receiver.messages) == 5)
    time.sleep(0.5)
    sent = [message.payload["data"]["post"]["id"] for message in receiver.messages]
    assert (len(sent), set(sent)) == (5, scheduled)
    stored = sound_posts(two[0].database)
    assert {stored[number]["status"] for number in scheduled} == {"published"}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_if_the_sender_dies_or_is_frozen_another_takes_over(two, receiver, number):
    subscribe(two[0], receiver, "post.created")
    worker = leading_worker(two)
    os.kill(worker, number)
    try:
        other = two[0] if str(worker) not in two[0].workers else two[1]
        assert other.request("POST", "/v1/posts", {"title": "A", "content": "x"})[0] == 201
        eventually(lambda: receiver.messages)
        assert len(receiver.messages) == 1
    finally:
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)


def test_killed_workers_and_services_lose_nothing_that_was_acknowledged(serve_together, receiver, url, connection):
    two = [serve_together(), serve_together()]
    editors = [Editor(number) for number in range(4)]
    workers = [*editors, Undoer()]
    subscribe(two[0], receiver, *EVENTS)
    kills = (
        lambda: os.kill(two[0].worker, signal.SIGKILL),
        two[1].kill,
        lambda: os.kill(leading_worker(two), signal.SIGKILL),
    )
    for kill in kills:
        with all_at_work(workers, two):
            time.sleep(0.6)
            kill()
        for service in two:
            if service.process.poll() is not None:
                service.start()
            eventually(service.answers)
        check(workers, sound_posts(url))
        workers.append(workers.pop(0))  # so that each uses the other service
    settle(workers, two[0])
    pending = """
        SELECT (SELECT count(*) FROM delivery WHERE state = 'pending')
        + (SELECT count(*) FROM post WHERE status = 'scheduled' AND published_at < %s)
    """
    eventually(lambda: connection.execute(pending, [rfc3339(time.time() + FAR / 2)]).fetchone() == (0,), 60)
    stored = check(workers, sound_posts(url))
    for editor in editors:
        editor.check_messages(told(receiver), stored)


def test_a_process_that_hangs_in_a_transaction_loses_the_lock_after_3_seconds(serve_together, url):
    service = serve_together()
    frozen = engine_for(url)
    session = frozen.begin(1)
    begun = time.monotonic()
    assert service.request("POST", "/v1/posts", {"title": "A", "content": "x"})[0] == 503  # after two seconds
    eventually(lambda: service.request("POST", "/v1/posts", {"title": "A", "content": "x"})[0] == 201)
    assert time.monotonic() - begun < 10  # otherwise, it would keep the lock
    with pytest.raises(Unavailable) as caught:
        session.execute(Post.delete())
    session.recover(caught.value)
    frozen.close()


def test_writes_that_wait_for_the_lock_delay_no_read(serve_together, url):
    service = serve_together(WEB_CONCURRENCY=1)
    engine = engine_for(url)
    session = engine.begin(1)
    with ThreadPoolExecutor(5) as pool:
        writes = [pool.submit(service.request, "POST", "/v1/posts", {"title": "A", "content": "x"}) for _ in range(5)]
        time.sleep(0.2)
        assert max(service.wait("/v1/posts")[0] for _ in range(3)) < 1.5  # A write waits two seconds.
        session.commit()
        assert {write.result()[0] for write in writes} == {201}
    engine.close()


@pytest.fixture
def own_server():
    with PostgresqlServer() as server:
        yield server


def test_a_crash_of_postgresql_loses_nothing_and_the_services_recover_by_themselves(own_server, tmp_path):
    url = own_server.create("blog")
    with Server(url, log_file=tmp_path / "log", WEB_CONCURRENCY=2) as service:
        acknowledged, stopped = [], threading.Event()

        def write():
            while not stopped.is_set():
                status, headers, body = service.request("POST", "/v1/posts", {"title": "A", "content": "x"})
                if status == 201:
                    acknowledged.append(body["id"])
                else:  # The commit under way may have taken effect: such an answer does not ask for a retry.
                    assert status == 503, body
                    assert headers.get("Retry-After") == "1" or "may still have taken effect" in body["message"], body
                    time.sleep(0.05)

        with ThreadPoolExecutor(4) as pool:
            writers = [pool.submit(write) for _ in range(4)]
            eventually(lambda: len(acknowledged) > 10)
            own_server.stop(signal.SIGQUIT)
            before = len(acknowledged)
            status, headers, body = service.request("GET", "/v1/posts")
            assert (status, headers["Retry-After"], body["error"]) == (503, "1", 503)
            assert service.request("GET", "/healthz")[0] == 503
            own_server.start()
            eventually(lambda: len(acknowledged) > before + 10 or any(writer.done() for writer in writers))
            stopped.set()
            for writer in writers:
                writer.result()
        assert service.request("GET", "/healthz")[0] == 200
        assert set(acknowledged) <= set(sound_posts(url))
        assert "Traceback" not in service.log


@pytest.mark.parametrize("is_connected", [False, True])
def test_a_worker_that_starts_while_postgresql_crashes_is_restarted(own_server, tmp_path, is_connected):
    url = own_server.create("blog")
    with Server(url, log_file=tmp_path / "log", WEB_CONCURRENCY=1) as service:
        connection = psycopg.connect(url, autocommit=True)
        connection.execute("SELECT pg_advisory_lock(%s)", [SET_UP])
        if not is_connected:
            own_server.stop(signal.SIGQUIT)
        os.kill(int(service.worker), signal.SIGKILL)
        if is_connected:
            waiting = "SELECT count(*) FROM pg_locks WHERE objid = %s AND NOT granted"
            eventually(lambda: connection.execute(waiting, [SET_UP]).fetchone() == (1,))
            own_server.stop(signal.SIGQUIT)
        eventually(lambda: "cannot serve" in service.log)
        own_server.start()
        eventually(service.answers)
        connection.close()


def test_a_promoted_standby_has_everything_that_was_acknowledged(own_server, tmp_path):
    own_server.create("blog")
    with own_server.standby() as standby:
        hosts = f"127.0.0.1:{own_server.port},127.0.0.1:{standby.port}"
        url = f"postgresql://blogapi@{hosts}/blog?target_session_attrs=read-write"
        with Server(url, log_file=tmp_path / "log", WEB_CONCURRENCY=2) as service:
            acknowledged = []
            for _ in range(50):
                status, _, body = service.request("POST", "/v1/posts", {"title": "A", "content": "x"})
                assert status == 201
                acknowledged.append(body["id"])
            own_server.stop(signal.SIGQUIT)
            standby.run("pg_ctl", "promote", "-D", standby.data)
            eventually(lambda: service.request("POST", "/v1/posts", {"title": "A", "content": "x"})[0] == 201)
            assert set(acknowledged) <= set(sound_posts(standby.url("blog")))
