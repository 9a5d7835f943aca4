"""What the tests share: a clock that they set, the application with a key, and the real server."""

import pytest
from hypothesis import settings

from blogapi import create_app
from blogapi.config import Config
from blogapi.db import database
from tests.service import Service, add_key

NOON = 1_795_176_000  # 2026-11-20T12:00:00Z, the beginning of a window


settings.register_profile("quick", max_examples=100, derandomize=True)  # the same examples in each run
settings.register_profile("soak", max_examples=10_000)
settings.load_profile("quick")


def pytest_addoption(parser):
    parser.addoption("--soak", action="store_true", help="run what takes long in full, not a hundredth of it")


@pytest.fixture(scope="session")
def scale(pytestconfig):
    """How many times as much is done as in a quick run."""
    return 100 if pytestconfig.getoption("soak") else 1


def message(answer, status=400):
    """The message of an error, which must have that status."""
    assert (answer.status_code, answer.json["error"]) == (status, status)
    return answer.json["message"]


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock(NOON)


@pytest.fixture
def config(tmp_path):
    return Config(database=tmp_path / "blog.db", rate_limit=1_000_000)


@pytest.fixture
def app(config, clock):
    yield create_app(config, clock)
    database.close()


@pytest.fixture
def key(app):
    return add_key("tests")


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
    """Create a post, with what is given in place of the least there must be; return it."""

    def create(**fields):
        answer = client.post("/v1/posts", json={"title": "A title", "content": "Words."} | fields)
        assert answer.status_code == 201, answer.text
        return answer.json

    return create


@pytest.fixture
def service(tmp_path):
    """The real server on a real socket, stopped at the end."""
    with Service(tmp_path / "blog.db") as service:
        yield service
