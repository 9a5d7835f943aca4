"""PostgreSQL: lost answers, broken connections, and several services that start at once."""

import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest

from blogapi.engines import engine_for
from blogapi.postgresql.engine import LEADER, WRITER
from blogapi.server.threads import SharedDatabase
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Post
from tests.service import Server, add_key, free_port

pytestmark = pytest.mark.slow


class Proxy:
    """Forwards bytes to a PostgreSQL server up to a COMMIT, then disappears before or after forwarding that."""

    def __init__(self, port, passes_on):
        self.target = port
        self.passes_on = passes_on
        self.armed = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            with suppress(OSError):
                client = self.listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.target))
                ends = [client, server]
                threading.Thread(target=self.pump, args=(client, server, ends), daemon=True).start()
                threading.Thread(target=self.pump, args=(server, client, ends), daemon=True).start()
                continue
            return

    def pump(self, source, sink, ends):
        with suppress(OSError):
            while data := source.recv(65536):
                if self.armed and b"COMMIT\0" in data:
                    self.armed = False
                    if self.passes_on:
                        ends[1].sendall(data)
                        time.sleep(0.2)
                    break
                sink.sendall(data)
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
                end.close()


@pytest.mark.parametrize("passes_on", [True, False])
def test_a_commit_whose_answer_is_lost_is_looked_up(postgresql_server, url, passes_on, ask):
    proxy = Proxy(postgresql_server.port, passes_on)
    engine = engine_for(url.replace(f":{postgresql_server.port}/", f":{proxy.port}/"))
    database = SharedDatabase(engine)
    add_key(database, "tests")
    row = {"slug": "a", "status": "draft", "document": "{}"}
    engine.connections.close()  # A new connection sends the text of each statement.
    proxy.armed = True
    if passes_on:
        assert database.write(lambda tx: tx.insert(Post.insert(row))) == 1
    else:
        with pytest.raises(Unavailable) as caught:
            database.write(lambda tx: tx.insert(Post.insert(row)))
        assert (caught.value.maybe_changed, caught.value.retry_after) == (False, 1)
    assert ask("SELECT count(*) FROM post") == [(passes_on,)]
    assert not proxy.armed
    database.write(lambda tx: tx.execute(Post.update(slug="b")))
    engine.close()
    proxy.listener.close()


def test_a_broken_pooled_connection_is_replaced_unnoticed(url, ask):
    engine = engine_for(url, 3)
    database = SharedDatabase(engine)
    add_key(database, "tests")
    for use in (lambda: database.row(Post.select()), lambda: database.write(lambda tx: tx.row(Post.select()))):
        ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'blogapi'")
        assert use() is None
    engine.close()


def test_a_server_that_hangs_is_given_up_after_ten_seconds(serve_together, url, ask):
    another = psycopg.connect(url, autocommit=True)
    another.execute("SELECT pg_advisory_lock(%s)", [LEADER])  # keeps the webhook sender off the database
    service = serve_together(WEB_CONCURRENCY=1)
    assert service.request("GET", "/v1/posts")[0] == 200
    hanging = [pid for (pid,) in ask("SELECT pid FROM pg_stat_activity WHERE application_name = 'blogapi'")]
    for pid in hanging:
        os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        assert service.request("GET", "/v1/posts")[0] == 200  # on another connection
        assert 10 <= time.monotonic() - begun < 25
        assert service.request("POST", "/v1/posts", {"title": "A", "content": "x"})[0] == 201
    finally:
        for pid in hanging:
            os.kill(pid, signal.SIGCONT)
        another.close()


def test_too_many_connections_make_it_unavailable_for_a_while(url):
    modest = url.replace("blogapi@", "modest@")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE ROLE modest LOGIN CONNECTION LIMIT 1")
        with psycopg.connect(modest), pytest.raises(Unavailable, match="too many connections") as caught:
            SharedDatabase(engine_for(modest)).row(Post.select())
        connection.execute("DROP ROLE modest")
    assert caught.value.retry_after == 1


def test_a_missing_server_is_reported_in_one_line_without_the_password(tmp_path):
    service = Server(f"postgresql://me:secret@127.0.0.1:{free_port()}/x", log_file=tmp_path / "log", key="none")
    for result in (service.blogapi("init"), service.blogapi("keys", "list")):
        assert result.returncode == 1
        assert result.stderr.count("\n") == 1
        assert "Connection refused" in result.stderr
        assert "secret" not in result.stderr + result.stdout


def test_only_one_process_in_the_whole_cluster_writes_at_a_time(url, ask):
    engine, other = engine_for(url), engine_for(url)
    session = engine.begin(1)
    assert other.begin() is None
    assert ask("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = %s", WRITER) == [(1,)]
    session.commit()
    other.begin().commit()
    engine.close()
    other.close()


def test_several_services_that_start_at_once_set_the_database_up_once(postgresql_server):
    with psycopg.connect(postgresql_server.url("postgres"), autocommit=True) as connection:
        connection.execute("CREATE DATABASE several")
    engines = [engine_for(postgresql_server.url("several")) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        created = list(pool.map(lambda engine: engine.open(), engines))
    assert sorted(created) == [False] * 5 + [True]
