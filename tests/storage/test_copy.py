"""Copies between the engines, and backups from PostgreSQL."""

import pytest

from blogapi import create_app
from blogapi.config import Config
from blogapi.copy import backup, copy
from blogapi.engines import engine_for
from blogapi.posts import storage as posts
from blogapi.storage import keys
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Author
from blogapi.webhooks import storage as webhooks
from tests.conftest import NOON, Clock
from tests.invariants import sound_posts
from tests.postgresql.programs import PROGRAMS

pytestmark = [pytest.mark.skipif(not PROGRAMS, reason="PostgreSQL's programs are not there"), pytest.mark.slow]


@pytest.fixture
def filled(url, tmp_path):
    """A PostgreSQL database with some of everything."""
    app = create_app(Config(database=url, rate_limit=1_000_000), Clock(NOON))
    database = app.extensions["blogapi"].database
    key = keys.new_key()
    database.write(keys.add, "mine", key)
    database.write(webhooks.add, "http://127.0.0.1:1/", ["post.created"])
    for number in range(50):
        fields = {"title": f"Post {number}", "content": "Wörds " * number, "tags": [f"Tag {number % 7}", "all"]}
        database.write(posts.add, fields | {"status": ["draft", "published"][number % 2]}, Author("mine"))
    later = {"title": "Later", "content": "x", "tags": [], "status": "scheduled"}
    later["published_at"] = "2030-01-01T00:00:00Z"
    database.write(posts.put, "later", later, Author("mine"))
    database.write(posts.delete, 50, Author("mine"), permanent=True)
    database.write(posts.delete, 49, Author("mine"))
    for content in ("one", "two"):
        database.write(posts.change, 1, {"content": content}, Author("mine"))
    yield app, key
    database.close()


def answers(app, key):
    """What a client sees: lists, posts, their entity tags, and the deliveries."""
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {key}"
    paths = ["posts", "tags", "webhooks", "webhooks/1/deliveries", "trash", "posts/1/revisions", "posts/1/revisions/1"]
    paths += [f"posts/{number}" for number in range(1, 53)]
    found = [client.get(f"/v1/{path}") for path in paths]
    return [(answer.status_code, answer.data, answer.headers.get("ETag")) for answer in found]


def test_a_copy_there_and_back_is_identical_to_the_byte(filled, postgresql_server, tmp_path):
    app, key = filled
    before = answers(app, key)
    source = app.extensions["blogapi"].database.engine
    postgresql_server.execute("CREATE DATABASE copied")
    targets = tmp_path / "blog.db", postgresql_server.url("copied")
    for number, target in enumerate(targets, 52):  # 51 is the last one assigned.
        copy(source, engine_for(target))
        other = create_app(Config(database=target, rate_limit=1_000_000), Clock(NOON))
        assert answers(other, key) == before
        sound_posts(target)
        source.close()
        database = other.extensions["blogapi"].database
        new = {"title": "New", "content": "x", "status": "draft", "tags": []}
        assert database.write(posts.add, new, Author("mine")).id == number
        database.write(posts.delete, number, Author("mine"), permanent=True)
        before = answers(other, key)
        source = database.engine
    source.close()


def test_a_backup_is_a_sqlite_file_and_neither_it_nor_a_copy_overwrites_anything(filled, url, tmp_path):
    path = tmp_path / "backup.db"
    backup(engine_for(url), path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(sound_posts(path)) == 49
    for target, why in ((path, "File exists"), (tmp_path / "none" / "backup.db", "No such file or directory")):
        with pytest.raises(OSError, match=why) as raised:
            backup(engine_for(url), target)
        assert raised.value.strerror == why
    with pytest.raises(Unavailable, match="it is not empty"):
        copy(engine_for(url), engine_for(url))


def test_a_backup_of_an_empty_database_is_refused_and_nothing_is_written(postgresql_server, tmp_path):
    postgresql_server.execute("CREATE DATABASE nothing")
    with pytest.raises(Unavailable, match="it is empty; run blogapi init"):
        backup(engine_for(postgresql_server.url("nothing")), tmp_path / "backup.db")
    assert list(tmp_path.glob("backup.db*")) == []


def test_an_interrupted_copy_leaves_nothing_and_can_be_repeated(filled, url, postgresql_server, tmp_path):
    def interrupted(rows, count):
        yield next(rows)
        raise KeyboardInterrupt

    postgresql_server.execute("CREATE DATABASE interrupted")
    for target in (tmp_path / "blog.db", postgresql_server.url("interrupted")):
        with pytest.raises(KeyboardInterrupt):
            copy(engine_for(url), engine_for(target), interrupted)
        assert list(tmp_path.glob("blog.db*")) == []
        copy(engine_for(url), engine_for(target))
        sound_posts(target)
        (tmp_path / "blog.db").unlink(missing_ok=True)
