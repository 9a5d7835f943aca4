"""PostgreSQL: lost responses, broken connections, and several services that start at once."""

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
from blogapi.postgresql.engine import LEADER
from blogapi.server.threads import SharedDatabase
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Post
from tests.service import Server, add_key, free_port

pytestmark = pytest.mark.slow

OURS = "FROM pg_stat_activity WHERE application_name = 'blogapi'"


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
def test_a_commit_whose_answer_is_lost_is_looked_up(postgresql_server, url, passes_on, connection):
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
    assert connection.execute("SELECT count(*) FROM post").fetchone() == (passes_on,)
    assert not proxy.armed
    database.write(lambda tx: tx.execute(Post.update(slug="b")))
    engine.close()
    proxy.listener.close()


def test_a_broken_pooled_connection_is_replaced_unnoticed(postgresql, connection):
    add_key(postgresql, "tests")
    for use in (lambda: postgresql.row(Post.select()), lambda: postgresql.write(lambda tx: tx.row(Post.select()))):
        connection.execute(f"SELECT pg_terminate_backend(pid) {OURS}")
        assert use() is None


def test_a_server_that_hangs_is_given_up_after_ten_seconds(serve_together, connection):
    connection.execute("SELECT pg_advisory_lock(%s)", [LEADER])  # keeps the webhook sender off the database
    service = serve_together(WEB_CONCURRENCY=1)
    assert service.request("GET", "/v1/posts")[0] == 200
    hanging = [pid for (pid,) in connection.execute(f"SELECT pid {OURS}")]
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


def test_too_many_connections_make_it_unavailable_for_a_while(url, connection):
    modest = url.replace("blogapi@", "modest@")
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


def test_several_services_that_start_at_once_set_the_database_up_once(postgresql_server):
    postgresql_server.execute("CREATE DATABASE several")
    engines = [engine_for(postgresql_server.url("several")) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        created = list(pool.map(lambda engine: engine.open(), engines))
    assert sorted(created) == [False] * 5 + [True]
