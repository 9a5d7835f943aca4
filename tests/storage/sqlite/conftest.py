"""A database file of the test's own, without an application."""

import gc
import sqlite3

import pytest

from blogapi.server.threads import SharedDatabase
from blogapi.storage.engine import Loop
from blogapi.storage.models import Post
from blogapi.storage.sqlite import Sqlite


class OneConnection(Loop):
    """In these tests, threads stand in for a server's greenlets, which share a connection."""

    is_cooperative = True


def add(tx, slug):
    """Add a row for a post."""
    return tx.insert(Post.insert(slug=slug, status="draft", document="{}"))


@pytest.fixture
def uncollected():
    """Disables the garbage collector, so memory that only it would free stays in use."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "blog.db"


@pytest.fixture
def engine(path):
    engine = Sqlite(path, loop=OneConnection())
    engine.open()
    yield engine
    engine.close()


@pytest.fixture
def database(engine):
    return SharedDatabase(engine)


@pytest.fixture
def pragma(engine):
    return lambda text: engine.connection.execute(f"PRAGMA {text}").fetchone()[0]


@pytest.fixture
def other(engine, path):
    """Another program's connection to the database."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    yield connection
    connection.close()


@pytest.fixture
def slugs(database):
    return lambda: [slug for (slug,) in database.rows(Post.select(Post.slug).order_by(Post.id))]
