"""Reading a file that a post was written to returns the same post: export and import, GET and PUT."""

from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blogapi import create_app
from blogapi.config import Config
from blogapi.posts import lists
from blogapi.wings.transfer.export import export
from blogapi.wings.transfer.importer import checked, store
from tests.api.fixtures import with_key
from tests.blogs import open_sources
from tests.conftest import NOON, Clock
from tests.markdown.texts import FIELDS

pytestmark = pytest.mark.slow

STATUSES = st.sampled_from(
    [
        {"status": "draft"},
        {"status": "draft", "published_at": "2020-01-02T03:04:05Z"},
        {"status": "published"},
        {"status": "published", "published_at": "0001-01-02T03:04:05Z"},
        {"status": "archived", "published_at": "2026-11-20T12:00:00Z"},
        {"status": "archived"},
        {"status": "scheduled", "published_at": "2026-11-20T13:00:00Z"},  # due by then
        {"status": "scheduled", "published_at": "9999-12-31T23:59:59Z"},
    ]
)
POSTS = st.dictionaries(
    st.from_regex("[a-z0-9]{1,9}(-[a-z0-9]{1,9}){0,2}", fullmatch=True),
    st.tuples(FIELDS, STATUSES).map(lambda both: both[0] | both[1]),
    min_size=1,
    max_size=3,
)


@contextmanager
def blog(path, clock):
    """The application with an empty database, and a client with a key."""
    app = create_app(Config(database=path, rate_limit=1_000_000), clock)
    yield app.extensions["blogapi"].database, with_key(app)
    app.extensions["blogapi"].database.close()


def fill(client, clock, fields_by_slug):
    """Create the posts, one minute apart, then let two hours pass."""
    for slug, fields in fields_by_slug.items():
        answer = client.put(f"/v1/posts/by-slug/{slug}", json=fields)
        assert answer.status_code == 201, answer.text
        clock.now += 60
    clock.now = NOON + 2 * 3600


def load(database, folder, clock):
    """Import a folder; return the result for each file."""
    with open_sources(folder, now=clock.now, publish=False) as sources:
        results = list(store(database, map(checked, sources), events=False))
    assert [checked for outcome, checked in results if outcome == "failed"] == []
    return [outcome for outcome, _ in results]


def listed(client, *without):
    return [{name: post[name] for name in post if name not in without} for post in client.get("/v1/posts").json]


@settings(max_examples=settings.default.max_examples // 2)
@given(POSTS, st.booleans())
def test_exported_and_imported_posts_are_the_same(fields_by_slug, flat):
    clock = Clock(NOON)
    with TemporaryDirectory() as folder:
        top = Path(folder)
        with blog(top / "old.db", clock) as (old, client), blog(top / "new.db", clock) as (new, new_client):
            fill(client, clock, fields_by_slug)
            export(lists.every(old), top / "posts", old, flat=flat)
            assert set(load(new, top / "posts", clock)) == {"created"}
            assert listed(new_client, "id", "updated_at") == listed(client, "id", "updated_at")
            before = listed(new_client)
            clock.now += 60
            assert set(load(new, top / "posts", clock)) == {"unchanged"}
            assert listed(new_client) == before
            assert set(load(old, top / "posts", clock)) == {"unchanged"}


@settings(max_examples=settings.default.max_examples // 2)
@given(POSTS)
def test_a_post_read_as_markdown_and_put_back_is_unchanged(fields_by_slug):
    clock = Clock(NOON)
    with TemporaryDirectory() as folder, blog(Path(folder) / "blog.db", clock) as (_, client):
        fill(client, clock, fields_by_slug)
        for slug in fields_by_slug:
            path = f"/v1/posts/by-slug/{slug}"
            before = client.get(path)
            file = client.get(path, headers={"Accept": "text/markdown"}).data
            clock.now += 60
            answer = client.put(path, data=file, content_type="text/markdown")
            assert (answer.status_code, answer.data) == (200, before.data)
            assert answer.headers["ETag"] == before.headers["ETag"]
