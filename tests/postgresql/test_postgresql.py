"""PostgreSQL as an engine: its tables, the round trips of a write, and copies from one engine to the other."""

import os
import re
import shutil
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from peewee import SQL

from blogapi.documents import STATUSES
from blogapi.engines import engine_for
from blogapi.paging import PAGE_BYTES, ListQuery
from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.search import storage as search
from blogapi.storage import keys
from blogapi.storage.database import Database
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Author, BaseModel, Post
from blogapi.storage.upgrades import VERSION
from blogapi.wings.history import revisions
from blogapi.wings.proposals import storage as proposals
from tests.cases import cases
from tests.service import eventually, free_port

pytestmark = pytest.mark.slow
PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")


@cases("url", ["postgresql://me:sec@ret@h/b", "postgresql://me:sec/ret@h/b", "postgresql://me:sec%ret@h/b"])
def test_an_address_with_an_unescaped_password_is_refused_and_not_shown(url):
    with pytest.raises(
        ValueError, match=r"^BLOGAPI_DATABASE: must be postgresql://USER@HOST/NAME, (with|%40)"
    ) as raised:
        engine_for(url)
    assert "ret" not in str(raised.value)


def listens(port):
    with socket.socket() as probe:
        return not probe.connect_ex(("127.0.0.1", port))


@pytest.mark.skipif(not PGBOUNCER, reason="PgBouncer is not there")
@cases(("mode", "refusal"), [("transaction", "set pool_mode = session"), ("session", None)])
def test_a_pooler_must_keep_sessions_apart(postgresql_server, postgresql_url, mode, refusal):
    port, settings = free_port(), postgresql_server.folder / "pgbouncer.ini"
    settings.write_text(f"""
        [databases]
        * = host=127.0.0.1 port={postgresql_server.port} user=blogapi
        [pgbouncer]
        listen_addr = 127.0.0.1
        listen_port = {port}
        unix_socket_dir =
        auth_type = any
        pool_mode = {mode}
        ignore_startup_parameters = extra_float_digits
    """)
    command = [PGBOUNCER, "--quiet", settings]
    with subprocess.Popen(command, user=postgresql_server.user, cwd="/", stderr=subprocess.DEVNULL) as pooler:
        engine = engine_for(f"postgresql://blogapi@127.0.0.1:{port}/{postgresql_url.rpartition('/')[2]}")
        try:
            eventually(lambda: listens(port))
            with pytest.raises(Unavailable, match=refusal) if refusal else closing(engine):
                engine.open()
        finally:
            pooler.terminate()


@cases("model", BaseModel.__subclasses__())
def test_the_models_mirror_the_schema(postgresql_url, model):
    with psycopg.connect(postgresql_url) as connection:
        query = """
            SELECT column_name, is_nullable = 'YES', data_type, collation_name FROM information_schema.columns
            WHERE table_name = %s ORDER BY ordinal_position
        """
        columns = connection.execute(query, [model._meta.table_name]).fetchall()
        query = """
            SELECT attname FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
            WHERE indrelid = %s::regclass AND indisprimary ORDER BY array_position(indkey::int2[], attnum)
        """
        key = [name for (name,) in connection.execute(query, [model._meta.table_name])]
    fields = model._meta.sorted_fields
    assert [(name, null) for name, null, *_ in columns] == [(field.column_name, field.null) for field in fields]
    assert key == [field.column_name for field in model._meta.get_primary_keys()]
    assert {collation for *_, kind, collation in columns if kind == "text"} <= {"C"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (f"UPDATE blogapi SET version = {VERSION + 1}", f"its version {VERSION + 1} is newer than this .* {VERSION};"),
        ("UPDATE blogapi SET version = 4; ALTER TABLE post_tag DROP COLUMN name", "export its posts with the old"),
        ("ALTER TABLE post_tag RENAME name TO spelling", "export its posts with the old program"),
        ("DROP TABLE blogapi", "it belongs to another program"),
    ],
    ids=["newer", "older", "unreleased", "foreign"],
)
def test_a_database_of_another_version_is_refused(url, connection, change, message):
    connection.execute(change)
    with pytest.raises(Unavailable, match=message):
        engine_for(url).open()


def test_a_user_without_rights_is_not_told_that_the_database_is_empty(url, connection):
    connection.execute("CREATE ROLE stranger LOGIN")
    try:
        with pytest.raises(Unavailable, match="permission denied for table blogapi"):
            engine_for(url.replace("//blogapi@", "//stranger@")).open()
    finally:
        connection.execute("DROP ROLE stranger")


@pytest.mark.parametrize("change", ["DELETE FROM api_key", "UPDATE api_key SET digest = 'new'"], ids=["gone", "new"])
@pytest.mark.parametrize("is_used", [True, False], ids=["used", "unused"])
def test_a_key_revoked_during_a_request_is_unknown(postgresql, connection, change, is_used):
    key = keys.new_key()
    postgresql.write(keys.add, "mine", key)
    if is_used:
        assert keys.authenticate(postgresql, keys.digest_of(key))
    with ThreadPoolExecutor(1) as pool:
        with connection.transaction():
            connection.execute(change)
            authenticated = pool.submit(keys.authenticate, postgresql, keys.digest_of(key))
            waits = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            eventually(lambda: connection.execute(waits).fetchone())
        assert authenticated.result(20) is None


FILL = """
    WITH filled AS (
        INSERT INTO post (slug, status, published_at, document)
        SELECT 's' || n, CASE WHEN n % 10 = 0 THEN 'draft' ELSE 'published' END,
               CASE WHEN n % 10 > 0 THEN '2026-01-01T00:00:' || lpad((n % 60)::text, 2, '0') || 'Z' END, '{}'
        FROM generate_series(1, 5000) AS n
        RETURNING id, status, published_at
    )
    INSERT INTO post_tag SELECT 'all', status, id, published_at, 'all' FROM filled
"""

FILL_SEARCH = """
    INSERT INTO search
    SELECT id, ' ', ' common rare' || id || ' ¶616c6c ', 'common rare' || id || ' ¶616c6c' FROM post
"""


class Asked(Database):
    """Keeps queries with their values instead of running them."""

    def __init__(self, engine):
        super().__init__(engine)
        self.queries = []

    def rows(self, query, **values):
        self.queries.append((query, values))
        return iter(())


def search_query(engine, **query):
    """The query of a page of a search, and its values."""
    asked = Asked(engine)
    search.read_page(asked, ListQuery(20, **query))
    return asked.queries[-1]


def rows_read(plan):
    """The largest number of rows that a step of a plan returns."""
    return max(plan["Actual Rows"] * plan["Actual Loops"], *(rows_read(step) for step in plan.get("Plans", [])), 0)


def explained(engine, connection, query, values):
    """The plan of a query, after running it."""
    statement = engine.statement(query)
    statement = statement._replace(text=f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}")
    ((((plan,),),),) = [result.rows for result in connection.run([connection.bind(statement, values)])]
    return plan["Plan"]


@pytest.mark.parametrize("analyzed", [True, False])
def test_no_list_reads_many_more_posts_than_it_returns(postgresql, connection, analyzed):
    engine = postgresql.engine
    values = {"before": 2**62, "limit": 21, "tag": "all", "time": "~", "id": 2**62}
    values["after"], values["key"] = "", "~"
    of_second = {"time": "2026-01-01T00:00:30Z"}
    for filling in (FILL, FILL_SEARCH, *["ANALYZE"] * analyzed):
        connection.execute(filling)
    with closing(engine.connections.connect()) as reading:
        for status in (None, *STATUSES):
            for by_tag in (True, False):
                queries = [
                    (lists.created_query(status, by_tag), values),
                    (lists.time_query("published_at", status, by_tag, False), values),
                    (lists.time_query("published_at", status, by_tag, True), values | of_second),
                ]
                if analyzed:  # as PostgreSQL does by itself within a minute
                    tag = "all" if by_tag else None
                    queries += [
                        search_query(engine, q=q, status=status, tag=tag, sort=sort)
                        for sort in ("created_at", "published_at")
                        for q in ("rare4711", "common")
                    ]
                for query, given in queries:
                    plan = explained(engine, reading, query, given)
                    assert rows_read(plan) <= 220, plan


FIELDS = {"title": "A", "content": "x", "status": "published", "tags": ["a", "b", "c", "d"]}


def test_a_creation_and_a_deletion_take_three_round_trips_each(postgresql, tmp_path):
    def round_trips(operation, *arguments):
        """Count the messages for which libpq waits for an answer."""
        connections = postgresql.engine.connections
        connections.give(connection := connections.take())  # the one that the write will take
        with (tmp_path / "trace").open("w+") as trace:
            connection.pgconn.trace(trace.fileno())
            postgresql.write(operation, *arguments)
            connection.pgconn.untrace()
            trace.seek(0)
            return len(re.findall(r"\tF\t\d+\t(?:Sync|Query)\b", trace.read()))

    creations = [round_trips(posts.add, FIELDS | {"title": title}, Author("first")) for title in "ABCD"]
    # 4 is the newest with its tags.
    deletions = [round_trips(posts.delete, post_id, Author("first")) for post_id in (1, 2, 4)]
    assert creations[1:] + deletions[1:] == [3] * 5  # The first of each prepare statements.


def pages(read):
    page = read(None)
    yield from page.items
    while page.next:
        page = read(page.next)
        yield from page.items


def test_a_page_of_the_trash_or_of_proposals_reads_little_more_than_it_shows(url, connection):
    document = """'{"id":"1","title":"A","status":"draft","slug":"a","content":"' || repeat('x', 1000000) ||
        '","tags":[],"created_at":"2026-11-20T12:00:00Z","updated_at":"2026-11-20T12:00:00Z"}'"""
    values = f"number, 1, '', '', '2026-11-20T12:00:00Z', 'first', 'deleted', {document}"
    connection.execute(f"INSERT INTO revision SELECT {values} FROM generate_series(1, 60) AS number")
    connection.execute("INSERT INTO post (id, slug, status, document) VALUES (99, 'a', 'draft', '{}')")
    values = f"number, 99, 'agent', '2026-11-20T12:00:00Z', number, 1000000, '{{}}', {document}"
    connection.execute(f"INSERT INTO proposal SELECT {values} FROM generate_series(1, 15) AS number")
    sizes = []

    class Counting(Database):
        def rows(self, query, **values):
            rows = list(super().rows(query, **values))
            sizes.append(sum(len(row[2]) for row in rows))
            return iter(rows)

    with closing(Counting(engine_for(url))) as database:
        trash = list(pages(lambda before: revisions.trash(database, 100, before)))
        assert [entry.post_id for entry in trash] == list(range(60, 0, -1))
        assert len(list(pages(lambda before: proposals.page(database, None, 100, before)))) == 15
    assert max(sizes) <= PAGE_BYTES + 2_100_000


def test_a_read_of_more_than_two_seconds_is_ended_but_not_a_write(postgresql):
    with pytest.raises(Unavailable, match="statement timeout") as caught:
        postgresql.read_in_thread("client", lambda reader: reader.row(SQL("SELECT pg_sleep(60)")))
    assert caught.value.retry_after == 1
    assert postgresql.write_in_thread(lambda tx: tx.row(SQL("SELECT pg_sleep(2.5)"))) is not None


def test_three_long_reads_leave_connections_for_others_and_a_fourth_has_to_wait(postgresql):
    def read_during(client, *others):
        def read(reader):
            return read_during(*others) if others else postgresql.row(SQL("SELECT 1"))

        return postgresql.read_in_thread(client, read)

    assert read_during(*"abc") == (1,)
    with pytest.raises(Unavailable, match="locked"):
        read_during(*"abcd")


def test_a_commit_counts_even_if_the_server_ends_the_connection_right_after_it(postgresql, connection):
    committing = "query = 'COMMIT' AND clock_timestamp() - query_start > interval '10 ms'"
    end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = %s AND state = 'active' AND {committing}"
    ended = []

    def operation(tx):
        for setting in ("commit_delay = 100000", "commit_siblings = 0"):  # 0.1 s, for which it cannot be interrupted
            tx.execute(SQL(f"SET LOCAL {setting}"))
        (pid,) = tx.row(SQL("SELECT pg_backend_pid()"))
        ended.append(pool.submit(eventually, lambda: connection.execute(end, [pid]).fetchone()))
        return tx.insert(Post.insert(slug="a", status="draft", document="{}"))

    with ThreadPoolExecutor(1) as pool:
        assert postgresql.write(operation) == 1
        ended[0].result()
    assert list(postgresql.rows(Post.select(Post.slug))) == [("a",)]
