"""Fixtures for the tests of the owner's page."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from blogapi.api.service import EXTENSION, Service
from blogapi.server.threads import SharedDatabase
from blogapi.storage.engine import Loop
from blogapi.storage.models import DraftCopy
from tests.outside.tools import install, installing, require_node
from tests.owner.browser import LOOKS, MORE_LOOKS, Window
from tests.owner.pages import enter, put_copy, view
from tests.service import CHECKOUT


@pytest.fixture
def owner(app):
    """A client with a session."""
    return enter(app)


@pytest.fixture
def put(owner):
    """Send the copy of a form, under a number."""
    return lambda fields, number, **typed: put_copy(owner, fields | {"number": str(number)} | typed)


@pytest.fixture
def form(owner):
    """The fields of a form."""
    return lambda path="/settings/posts/new", label="Save draft": view(owner, path).form(label)[1]


@pytest.fixture
def contents(database):
    """The contents of the copies in this state."""

    def read(*states):
        rows = database.rows(DraftCopy.select(DraftCopy.fields).where(DraftCopy.state.in_(states or ["open"])))
        return sorted(json.loads(fields)["content"] for (fields,) in rows)

    return read


@pytest.fixture
def threaded(app, config, clock):
    """A service that uses threads as our server does. A thread cannot access the request."""
    loop = Loop()
    loop.is_cooperative = True
    with ThreadPoolExecutor(1) as pool:
        loop.run_in_thread = lambda function, **options: pool.submit(function).result()
        app.extensions[EXTENSION] = service = Service.open(config, clock, loop, SharedDatabase)
        yield
        service.database.close()


@pytest.fixture
def visitor(browser, blog_in_browser, scale):
    """A window without a session."""
    return Window(browser, *blog_in_browser, looks=LOOKS if scale == 1 else LOOKS + MORE_LOOKS)


@pytest.fixture
def window(visitor):
    """A window for the owner, with a session."""
    visitor.enter()
    return visitor


@pytest.fixture
def evening(window):
    """A published post in the window's blog."""
    window.service.request("POST", "/v1/posts", {"title": "Evening", "content": "One.", "status": "published"})


@pytest.fixture(scope="session")
def axe():
    """The script of axe-core, which finds accessibility problems; it is installed once in .venv-axe."""
    require_node()
    target = CHECKOUT / ".venv-axe"
    with installing(target / "node_modules/.package-lock.json", Path(__file__)) as needed:
        if needed:
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0"]
            install("npm", "install", "--prefix", target, *options, "axe-core@4.14.1", cwd=CHECKOUT)
    return (target / "node_modules/axe-core/axe.min.js").read_text()
