"""Pool connections to PostgreSQL. They use libpq's pipelines, because psycopg's are too slow (docs/decisions.md)."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import count, cycle, islice
from typing import Any, NamedTuple

import psycopg
from psycopg import generators
from psycopg.abc import PQGen
from psycopg.adapt import PyFormat, Transformer
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from psycopg.types.numeric import Int8Dumper
from psycopg.waiting import Wait

from blogapi.storage.engine import NAME, Loop, Statement
from blogapi.storage.errors import RETRY_SECONDS, Busy, DiskFull, NotUnique, Unavailable

MAX_PREPARED = 500  # a connection with more prepared statements is closed instead of being returned to the pool
CONNECTION_SECONDS = 2.0  # longest wait for a place in the pool
LOOK_UP_SECONDS = 5.0  # time limit for finding out whether a COMMIT succeeded if its response was lost
STATUS_POLL_SECONDS = 0.05
STATEMENT_TIMEOUT_SECONDS = 2.2  # time limit for a query, because other requests may be waiting for its connection
LOCK_TIMEOUT_SECONDS = 2.0  # longest wait for the writer's lock
DEFAULTS = {  # libpq parameters, which the URL in BLOGAPI_DATABASE can override
    "application_name": "blogapi",
    "connect_timeout": "3",  # seconds
    "target_session_attrs": "read-write",  # if there are several hosts, choose the one that accepts writes
    "keepalives_idle": "2",  # seconds; with this and the next two settings, a dead server is noticed within 5 seconds
    "keepalives_interval": "1",
    "keepalives_count": "3",
    "tcp_user_timeout": "5000",  # ms
}
# Settings for each session. Some of them make each query use its index: without statistics, PostgreSQL might otherwise
# scan or sort all rows.
SETTINGS = f"""
    SET statement_timeout = {round(1000 * STATEMENT_TIMEOUT_SECONDS)};
    SET lock_timeout = {round(1000 * LOCK_TIMEOUT_SECONDS)};
    SET default_transaction_isolation = 'read committed';
    SET idle_in_transaction_session_timeout = '3s';
    SET tcp_keepalives_idle = 1;
    SET tcp_keepalives_interval = 1;
    SET tcp_keepalives_count = 2;
    SET client_encoding = 'UTF8';
    SET enable_seqscan = off;
    SET enable_bitmapscan = off;
    SET jit = off;
    SET max_parallel_workers_per_gather = 0;
    SET plan_cache_mode = force_generic_plan;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off';
    SELECT set_config(name, 'lz4', false) FROM pg_settings  -- much faster for large posts
    WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals);
    SELECT repeat(' ', 65536)  -- enlarges libpq's buffer permanently, so that a list arrives in one piece
"""
SESSION = "SELECT pg_backend_pid()"  # returns the id of the process that serves the session
# Matches each failed attempt in the message that psycopg raises if there are several hosts
ATTEMPT = re.compile(r"^- host: '(.*?)', port: '(.*?)'.* failed: (.*)$", re.MULTILINE)
UNLIMITED = "SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0"
# SQLSTATEs of temporary failures: the query took too long, or the server has no free connection, is stopping, is
# starting, or has become a standby
PASSING_STATES = {"53300", "53400", "57014", "57P01", "57P02", "57P03", "57P05", "25P03", "25006", "55P03", "55000"}


class Result(NamedTuple):
    """The rows that a statement returned, and how many rows it read or changed."""

    rows: list[tuple]
    row_count: int | None


class NoRow(Unavailable):
    """No row can match: a value contains U+0000, or the key was revoked while its request was being counted."""


def numbered(statement: Statement) -> str:
    """Return a statement's SQL with numbered parameters ($1, $2 and so on)."""
    names = statement.names
    if names is None:
        numbers = count(1)
        return re.sub("%s", lambda _: f"${next(numbers)}", statement.text)
    return NAME.sub(lambda match: f"${names.index(match[1]) + 1}", statement.text)


class Unreachable(Unavailable):
    """The database server cannot be reached."""

    reason = "the database cannot be reached"

    def __init__(self, cause: object):
        super().__init__(cause, RETRY_SECONDS)


class PostgresConnection(psycopg.Connection):
    """A connection that can wait in the event loop, even if psycopg was imported before gevent patched Python."""

    wait_for_socket: Callable[[int, int], int] | None = None

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        # Use one type for integers of all sizes. Otherwise, a statement would be prepared again for each size.
        self.adapters.register_dumper(int, Int8Dumper)
        self._adapter = Transformer(self.adapters)
        # Maps the SQL and the parameter types of each prepared statement to its name
        self.prepared: dict[tuple[str, tuple], bytes] = {}
        self._new_names = map(b"%d".__mod__, count())

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a psycopg generator, and wait for the socket in the event loop. Closes the connection after a timeout."""
        if self.wait_for_socket is None:
            return super().wait(gen, *args, **kwargs)
        try:
            events = next(gen)
            while True:
                events = gen.send(self.wait_for_socket(self.pgconn.socket, events))
        except StopIteration as stop:
            return stop.value
        except TimeoutError:
            self.close()
            raise psycopg.OperationalError("the server is not responding") from None

    def bind(self, statement: Statement, values: Mapping[str, Any]) -> tuple:
        """Return a statement with its encoded values. Raises NoRow if PostgreSQL cannot store one of them."""
        parameters = statement.values if statement.names is None else [values[name] for name in statement.names]
        try:
            dumped = self._adapter.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        except psycopg.DataError as error:
            raise NoRow(error) from error
        return statement, dumped, self._adapter.types, self._adapter.formats

    def run(self, statements: list[tuple]) -> list[Result]:
        """Run statements in one round trip until one fails. Return their results. Raises NotUnique or Unavailable."""
        known = len(self.prepared)
        try:
            self.pgconn.enter_pipeline_mode()
            counts = [self._send(*statement) for statement in statements]
            self.pgconn.pipeline_sync()
            received = filter(None, self.wait(_fetch(self.pgconn, sum(counts))))
            try:
                self.pgconn.exit_pipeline_mode()
            except psycopg.OperationalError:  # The server sent a complete response, but then closed the connection.
                self.close()
            return [[self._read(result) for result in islice(received, number)][-1] for number in counts]
        except psycopg.Error as error:
            while len(self.prepared) > known:
                self.prepared.popitem()
            raise self.failure(error) from error
        except BaseException:  # After an error such as a MemoryError, the state of the connection is unknown.
            self.close()
            raise

    def _send(self, statement: Statement, values: list, types: tuple[int, ...], formats: list) -> int:
        """Send a statement, and prepare it first if it is new. Return the number of results to expect."""
        name = self.prepared.get((statement.text, types))
        if is_new := name is None:
            name = self.prepared[statement.text, types] = next(self._new_names)
            self.pgconn.send_prepare(name, numbered(statement).encode(), types)
        self.pgconn.send_query_prepared(name, values, formats, result_format=Format.BINARY)
        return 1 + is_new

    def _read(self, result: PGresult) -> Result:
        if result.status == ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
        self._adapter.set_pgresult(result)
        loaded = Result(self._adapter.load_rows(0, result.ntuples, tuple), result.command_tuples)
        result.clear()  # frees the memory at once, because it can be megabytes
        return loaded

    def failure(self, error: psycopg.Error) -> Exception:
        """Return NotUnique or Unavailable for an error of psycopg. Close the connection if it is lost."""
        match error:
            case psycopg.errors.UniqueViolation():
                return NotUnique(reason(error))
            case psycopg.errors.ForeignKeyViolation():
                return NoRow(reason(error))
            case psycopg.errors.LockNotAvailable():
                return Busy()
            case psycopg.errors.DiskFull():
                return DiskFull(reason(error))
        if self.closed or (isinstance(error, psycopg.OperationalError) and not error.sqlstate):
            self.close()
            return Unreachable(reason(error))
        return Unavailable(reason(error), RETRY_SECONDS if error.sqlstate in PASSING_STATES else None)


class Connections:
    """A pool of at most `size` connections to a database."""

    def __init__(self, url: str, size: int, loop: Loop, is_limited: bool):
        try:
            parameters = DEFAULTS | conninfo_to_dict(url)
        except psycopg.Error:  # Hide the error's message, which may contain the password.
            raise ValueError("BLOGAPI_DATABASE: must be postgresql://USER@HOST/NAME, with libpq parameters") from None
        user, hosts, ports, database = (str(parameters.get(name, "")) for name in ("user", "host", "port", "dbname"))
        # An unescaped @ or / in a password would make part of the password look like the host or the database name.
        if "@" in f"{hosts}{database}" or not re.fullmatch("[0-9,]*", ports):
            raise ValueError("BLOGAPI_DATABASE: must be postgresql://USER@HOST/NAME, with %40 for @ and %2F for /")
        places = zip(hosts.split(","), cycle(ports.split(",")), strict=False)
        place = ",".join(f"{host}:{port}".removesuffix(":") for host, port in places)
        self.name = f"postgresql://{user}{user and '@'}{place}/{database}"
        self._conninfo = make_conninfo("", **parameters)
        self._idle: list[PostgresConnection] = []  # used last in, first out
        self._free = loop.semaphore(size)
        self._loop = loop
        self._settings = SETTINGS if is_limited else f"{SETTINGS}; SET statement_timeout = 0"

    def connect(self) -> PostgresConnection:
        """Open a connection in a thread, because resolving a host name blocks. Raises Unavailable."""
        try:
            connection = self._loop.run_in_thread(self._open)
        except (psycopg.Error, OSError, UnicodeError) as error:
            raise Unreachable(reason(error)) from error
        connection.wait_for_socket = self._loop.wait_for_socket
        return connection

    def _open(self) -> PostgresConnection:
        connection = PostgresConnection.connect(self._conninfo, autocommit=True, prepare_threshold=None)
        connection.execute(self._settings)
        return connection

    @contextmanager
    def session(self) -> Iterator[PostgresConnection]:
        """Open a connection outside the pool for one block. Raises NotUnique or Unavailable, as `run` does."""
        with closing(self.connect()) as connection:
            try:
                yield connection
            except psycopg.Error as error:
                raise connection.failure(error) from error

    def check_sessions(self, connection: PostgresConnection) -> None:
        """Raise Unavailable if a pooler lets connections share a session, with its locks and settings."""
        session = connection.execute(SESSION).fetchone()
        if session == (connection.info.backend_pid,):  # There is no pooler in between.
            return
        with self.session() as other, other.transaction():
            if other.execute(SESSION).fetchone() == session or connection.execute(SESSION).fetchone() != session:
                raise Unavailable("its pooler (PgBouncer) does not keep sessions separate: set pool_mode = session")

    def take(self) -> PostgresConnection:
        """Take a connection from the pool, or open one. The caller must return it with `give`. Raises Unavailable."""
        if not self._free.acquire(timeout=CONNECTION_SECONDS):
            raise Busy
        try:
            return self._idle.pop() if self._idle else self.connect()
        except BaseException:
            self._free.release()
            raise

    def give(self, connection: PostgresConnection) -> None:
        """Return a connection to the pool, and roll back its transaction if it is open."""
        try:
            if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                with suppress(psycopg.Error):
                    connection.execute("ROLLBACK")
        finally:
            is_idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
            if is_idle and len(connection.prepared) <= MAX_PREPARED:
                self._idle.append(connection)
            else:
                connection.close()
            self._free.release()

    def committed(self, transaction_id: str) -> bool | None:
        """After a COMMIT without a response, find out whether it succeeded. Return None if this fails."""
        deadline = time.monotonic() + LOOK_UP_SECONDS
        while time.monotonic() < deadline:
            with suppress(Unavailable), self.session() as connection:
                ((status,),) = connection.execute("SELECT pg_xact_status(%s::xid8)", [transaction_id])
                if status != "in progress":
                    return {"committed": True, "aborted": False}.get(status)
            time.sleep(STATUS_POLL_SECONDS)
        return None

    def close(self) -> None:
        with suppress(IndexError):  # raised when no connection is left; another thread may have taken the last one
            while True:
                self._idle.pop().close()


def _fetch(pgconn: PGconn, count: int) -> PQGen[list[PGresult | None]]:
    """Flush the pipeline. Return the `count` results of its statements, and then the result that ends the pipeline."""
    yield from generators.send(pgconn)
    results = []
    for _ in range(2 * count + 1):  # libpq returns None after each statement's result.
        while pgconn.is_busy():
            pgconn.consume_input()  # Try this before waiting, because input has usually arrived already.
            if pgconn.is_busy():
                yield Wait.R
                pgconn.consume_input()
        results.append(pgconn.get_result())
    return results


def reason(error: Exception) -> str:
    """Return the message of an error in one line, with the cause for each host. libpq never includes the password."""
    hosts = [f"{host} port {port}: {cause}" for host, port, cause in ATTEMPT.findall(str(error))]
    return "; ".join(hosts) or str(error).strip().partition("\n")[0] or type(error).__name__
