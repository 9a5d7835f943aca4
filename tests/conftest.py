"""Fixtures for all tests: a clock that tests can set, the application with a key, and the real server."""

import gc
import inspect
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from peewee import SQL, fn

from blogapi import create_app
from blogapi.api.service import EXTENSION, Service
from blogapi.config import Config
from blogapi.storage.database import Database
from blogapi.storage.engine import BLOCKING
from tests.networks import SERVERS, forward, listen
from tests.postgresql.programs import PROGRAMS, PostgresqlServer, clear
from tests.service import Server, add_key

os.environ["BLOGAPI_CONFIG"] = os.devnull  # not the settings file of the machine, or one in the current folder
pytest_plugins = ["tests.processes", "tests.browsers"]
pytest_plugins += [f"tests.{room}.fixtures" for room in ("api", "storage", "webhooks")]
NOON = 1_795_176_000  # 2026-11-20T12:00:00Z, the start of a rate-limit window


# No deadlines, which a busy machine would miss; one database for all examples; the same examples in each quick run
MANY = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
settings.register_profile("quick", max_examples=25, derandomize=True, **MANY)
settings.register_profile("soak", max_examples=10_000, **MANY)
settings.load_profile("quick")
# A shell ignores SIGINT for background jobs, and every process that the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if Path("/dev/shm").exists() and shutil.disk_usage("/dev/shm").free > 2**30:
    tempfile.tempdir = "/dev/shm"  # Temporary files need not be on disk.


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="run long tests in full, not a hundredth of them")
    parser.addoption("--over", choices=SERVERS, help="send the requests of tests of the application over a server")


@pytest.fixture(scope="session")
def scale(pytestconfig):
    """The factor by which `make soak` does more than other runs."""
    return 100 if pytestconfig.getoption("soak") else 1


@pytest.fixture(scope="session")
def soak(scale):
    """Run the test only in `make soak`."""
    if scale == 1:
        pytest.skip("runs in make soak")


def message(answer, status=400):
    """Return the message of an error, which must have this status."""
    assert (answer.status_code, answer.json["error"]) == (status, status)
    return answer.json["message"]


def without_id(text):
    """The message of a 500 or a 503, without the id at its end, which also appears in the log."""
    text, found = re.subn(r" \(id [0-9a-f]{8}\)$", "", text)
    assert found == 1
    return text


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock(NOON)


SQLITE_ONLY = {"config", "statements", "plan", "damage"}  # fixtures that need a database file
POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.slow)
# The folders and files whose tests run on both engines, as those marked with `both_engines` do. Parsing, rendering and
# HTTP do not differ by engine: each query runs on PostgreSQL in one or two tests, and so does what depends on locks.
BOTH_ENGINES = {"proposals", "search", "storage", "tags", "images/test_images.py", "server/test_hostile.py"}
BOTH_ENGINES |= {f"history/test_{name}.py" for name in ("history", "undo_tags")}
BOTH_ENGINES |= {f"posts/test_{name}.py" for name in ("former_slugs", "idempotency", "list", "list_order")}
BOTH_ENGINES.add("posts/test_status_in_every_way.py")
BOTH_ENGINES |= {f"webhooks/test_{name}.py" for name in ("deliveries", "outbox", "webhooks")}


def pytest_generate_tests(metafunc):
    """Run the tests of the database and the server on both engines if PostgreSQL's programs are found."""
    names = set(inspect.signature(metafunc.function).parameters)
    is_of_sqlite = names & SQLITE_ONLY or metafunc.definition.get_closest_marker("sqlite")
    path = metafunc.definition.nodeid.partition("::")[0].removeprefix("tests/")
    is_marked = metafunc.definition.get_closest_marker("both_engines")
    is_of_both = is_marked or {path.partition("/")[0], path} & BOTH_ENGINES
    if PROGRAMS and "backend" in metafunc.fixturenames and is_of_both and not is_of_sqlite:
        metafunc.parametrize("backend", ["sqlite", POSTGRESQL], indirect=True)


LONG = {"docs", "outside", "owner", "server", "sync"}  # the folders whose slow tests take longest


def pytest_collection_modifyitems(config, items):
    """Begin with the slowest tests, so that all workers end at the same time.

    With another server, leave out the tests that look into the application's thread or need our server.
    """
    items.sort(key=lambda item: item.path.parent.name not in LONG)
    if config.getoption("--over"):
        looks_inside = {"meanwhile", "statements", "plan"}
        items[:] = [
            each
            for each in items
            if not (looks_inside.intersection(each.fixturenames) or each.get_closest_marker("in_process"))
        ]


def pytest_collection_finish():
    gc.freeze()  # Each collection of garbage would go through everything that was imported and collected.


@pytest.fixture(scope="session")
def postgresql_server():
    with PostgresqlServer() as server:
        yield server


@pytest.fixture(scope="session")
def postgresql_url(postgresql_server):
    """A PostgreSQL database that tests use one after another."""
    return postgresql_server.create("tests")


@pytest.fixture
def url(postgresql_server, request):
    """A PostgreSQL database of the test's own."""
    return postgresql_server.create(request.node.name[:60].translate(str.maketrans("[]-", "___")))


@pytest.fixture
def backend(request):
    return getattr(request, "param", "sqlite")


@pytest.fixture
def config(backend, tmp_path, request):
    if backend == "postgresql":
        url = request.getfixturevalue("postgresql_url")
        clear(url)
        return Config(database=url, rate_limit=1_000_000)
    return Config(database=tmp_path / "blog.db", rate_limit=1_000_000)


@cache
def application(cors_origins):
    """Return the application with these origins, and the bytes of an empty database.

    Tests share the application, but each has its own database. Setting one up takes three times as long as copying one.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blog.db"
        app = create_app(Config(database=path, cors_origins=cors_origins))
        app.extensions[EXTENSION].database.close()
        return app, path.read_bytes()


@pytest.fixture
def app(config, clock, request):
    app, empty = application(config.cors_origins)
    if isinstance(config.database, Path) and not config.database.exists():
        config.database.write_bytes(empty)
    app.extensions[EXTENSION] = service = Service.open(config, clock, BLOCKING, Database)
    if over := request.config.getoption("--over"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(app, "wsgi_app", forward(listen(app.wsgi_app, over)))
            yield app
    else:
        yield app
    service.database.close()


@pytest.fixture
def database(app):
    return app.extensions["blogapi"].database


@pytest.fixture
def count(database):
    """Count the rows of a table, named by its model."""
    return lambda model: database.row(model.select(fn.COUNT(SQL("*"))))[0]


@pytest.fixture
def statements(database):
    """Collect the statements that run in a block."""

    @contextmanager
    def collect():
        collected = []
        database.engine.connection.set_trace_callback(collected.append)
        yield collected
        database.engine.connection.set_trace_callback(None)

    return collect


@pytest.fixture
def damage(config, database):
    """Set a column in the first row of a table, even a NOT NULL column to NULL, as in a damaged file."""

    def damage(table, column, value):
        with closing(sqlite3.connect(config.database, isolation_level=None)) as other:
            other.execute("PRAGMA writable_schema = ON")
            texts = f"{column} TEXT NOT NULL", f"{column} TEXT"
            other.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?)", texts)
            other.execute("PRAGMA writable_schema = RESET")
            other.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = 1", (value,))

    return damage


@pytest.fixture
def plan(database):
    """Return the steps by which SQLite runs a query."""

    def plan(query):
        statement = database.engine.statement(query)
        values = statement.values or dict.fromkeys(statement.names, 1)
        steps = database.engine.connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", values)
        return [row[3] for row in steps]

    return plan


@pytest.fixture
def key(database):
    return add_key(database, "tests")


@pytest.fixture
def stranger(app):
    """A client without a key."""
    return app.test_client()


@pytest.fixture
def client(app, key):
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    return client


@pytest.fixture
def post(client):
    """Create a post with these fields and defaults for the required ones; return it."""

    def create(**fields):
        answer = client.post("/v1/posts", json={"title": "A title", "content": "Words."} | fields)
        assert answer.status_code == 201, answer.text
        return answer.json

    return create


@pytest.fixture
def location(backend, tmp_path, request):
    """The database of a server: a file, or a URL."""
    return request.getfixturevalue("url") if backend == "postgresql" else tmp_path / "blog.db"


@pytest.fixture
def serve(location, tmp_path):
    """Start the real server with these settings, and stop it at the end."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(Server(location, log_file=tmp_path / "blog.log", **settings))


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A real server that quick tests share: they must not depend on its posts, nor stop it."""
    with Server(tmp_path_factory.mktemp("server") / "blog.db", measured=True) as server:
        yield server


@pytest.fixture
def service(serve):
    """The real server on a real socket."""
    return serve()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 2 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("to mount a small file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)  # even if a test failed
