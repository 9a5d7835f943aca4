"""Helpers for several test modules: a search, requests during slow work, and writes that wait for each other."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg
import pytest

from blogapi.api.service import EXTENSION, Service
from blogapi.engines import engine_for
from blogapi.posts import storage as posts
from blogapi.server.threads import SharedDatabase
from blogapi.storage.engine import Loop
from blogapi.storage.models import Author
from tests.api.fixtures import with_key
from tests.service import eventually


@pytest.fixture
def found(client):
    """Search; return the ids of the posts found, joined together."""

    def found(q, **query):
        answer = client.get("/v1/posts", query_string={"q": q} | query)
        assert answer.status_code == 200, answer.text
        return "".join(post["id"] for post in answer.json)

    return found


@pytest.fixture
def add(database):
    """Create a post, by default with the key `first`; return its id."""

    def add(by="first", **fields):
        new = {"title": "A", "content": "one", "status": "draft", "tags": ["a"]} | fields
        return database.write(posts.add, new, Author(by)).id

    return add


@pytest.fixture
def meanwhile(app, config, clock):
    """The statuses of another client's requests, each served while slow work runs in a thread, as our server does."""
    other, statuses = with_key(app), []

    class Serving(Loop):
        is_cooperative = True

        def run_in_thread(self, function, *, in_background=False):
            statuses.append(other.get("/v1/posts?limit=1").status_code)
            return function()

    app.extensions[EXTENSION] = service = Service.open(config, clock, Serving(), SharedDatabase)
    yield statuses
    service.database.close()


@pytest.fixture
def impatient(monkeypatch):
    """Wait 0.3 s for a busy database, instead of two seconds."""
    for module in ("storage.database", "server.threads"):
        monkeypatch.setattr(f"blogapi.{module}.BUSY_SECONDS", 0.3)


@pytest.fixture
def connection(url):
    """A connection to a PostgreSQL database of the test's own."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def postgresql(url):
    """A PostgreSQL database of the test's own."""
    with closing(SharedDatabase(engine_for(url, 5))) as database:
        yield database


@contextmanager
def locked(database):
    """Let another program hold the lock of the database."""
    other = database.engine.another(0)
    session = other.begin(1)
    yield
    session.commit()
    other.close()


def write_together(database, lock, *operations):
    """Let operations wait in this order for the same transaction; return the result or error of each."""
    with ThreadPoolExecutor(len(operations)) as pool:
        outcomes = []
        with lock:
            for operation in operations:
                outcomes.append(pool.submit(database.write, operation))
                eventually(lambda: len(database.commits.waiting) == len(outcomes))
        return [outcome.exception(20) or outcome.result() for outcome in outcomes]
