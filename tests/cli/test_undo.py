"""`blogapi undo`: one command undoes what a script did wrong."""

import os
import pty
import re
import subprocess
import sys
import time

import pytest

from blogapi.clock import rfc3339
from blogapi.posts import storage as posts
from blogapi.storage.database import Database
from blogapi.storage.models import Author
from blogapi.storage.sqlite import Sqlite
from tests.cli.conftest import stored

NOTHING = "changed back 0, restored 0, moved to the trash 0, left alone 0"
HOUR = 3600
NOW = time.time()
SINCE = rfc3339(NOW - 2 * HOUR)


@pytest.fixture
def at(path):
    """The database at a time some hours ago."""
    engine = Sqlite(path)
    engine.open()
    yield lambda hours: Database(engine, lambda: NOW - hours * HOUR)
    engine.close()


def add(database, title, by="good"):
    new = {"title": title, "content": "one", "status": "draft", "tags": []}
    return database.write(posts.add, new, Author(by)).id


def change(database, post_id, content, by):
    database.write(posts.change, post_id, {"content": content}, Author(by))


def words(database):
    return {slug: {**post, "updated_at": ""} for slug, post in stored(database).items()}


@pytest.fixture
def accident(at):
    """Three posts: a script overwrote one, deleted one and added one; another key then edited the third."""
    overwritten, deleted, edited = (add(at(3), title) for title in ("Over", "Gone", "Edited"))
    before = words(at(3))
    for post_id in (overwritten, edited):
        change(at(1), post_id, "overwritten", "bad")
    at(1).write(posts.delete, deleted, Author("bad"))
    add(at(1), "Spam", by="bad")
    change(at(0.5), edited, "edited", "good")
    return before


def test_a_keys_changes_are_undone_except_in_posts_that_another_key_has_changed_since(run, at, accident):
    done = [
        "1 “Over”: changed back",
        "2 “Gone”: restored",
        "3 “Edited”: left alone, good has changed it since",
        "4 “Spam”: moved to the trash",
        "changed back 1, restored 1, moved to the trash 1, left alone 1",
    ]
    before = words(at(0))
    status, output, error = run("undo", "--since", SINCE, "--key", "bad", "--dry-run")
    would_be = [line.replace(": ", ": would be ") for line in done[:-1]]
    assert (status, sorted(output[:-1]), output[-1], error) == (1, would_be, f"would be {done[-1]}", [])
    assert words(at(0)) == before
    status, output, error = run("undo", "--since", SINCE, "--key", "bad")
    assert (status, sorted(output[:-1]), output[-1], error) == (1, done[:-1], done[-1], [])
    assert words(at(0)) == accident | {"edited": before["edited"]}


@pytest.mark.slow
def test_on_a_terminal_it_asks_before_it_undoes_the_changes_of_all_keys(run, at, accident, path):
    before = words(at(0))
    command = [sys.executable, "-c", "from blogapi.cli import main; main()", "undo", "--since", SINCE]
    for option, answer, status, then in (([], b"n\n", 1, before), (["--yes"], b"", 0, accident)):
        terminal, other = pty.openpty()
        os.write(terminal, answer)
        env = os.environ | {"BLOGAPI_DATABASE": str(path)}
        ended = subprocess.run([*command, *option], stdin=other, capture_output=True, text=True, env=env, timeout=60)
        os.close(terminal), os.close(other)
        assert (ended.returncode, words(at(0))) == (status, then), ended.stderr
    assert "changed back 2, restored 1, moved to the trash 1, left alone 0" in ended.stdout
    assert run("undo", "--since", SINCE)[:2] == (0, [NOTHING])


def test_the_name_must_belong_to_a_key_or_an_author(run, at, accident):
    run("keys", "create", "laptop")
    status, output, error = run("undo", "--since", SINCE, "--key", "lap")
    known = "autosave, bad, good, import, laptop, rebase, settings, undo"
    hint = f"no key or author is called 'lap'; known: {known}"
    assert (status, output, error[-1]) == (2, [], f"Error: Invalid value for '--key': {hint}")
    assert run("undo", "--since", SINCE, "--key", "")[0] == 2  # an unset shell variable
    status, output, error = run("undo", "--since", SINCE, "--key", f"blog_{'a' * 43}")
    assert (status, output, "aaa" in "".join(error)) == (2, [], False)
    for name in ("laptop", "settings", "autosave", "import", "undo"):
        assert run("undo", "--since", SINCE, "--key", name) == (0, [NOTHING], [])


def test_nothing_can_be_undone_if_nothing_is_kept(run, at, accident, monkeypatch):
    monkeypatch.setenv("BLOGAPI_KEEP_DAYS", "0")
    before = words(at(0))
    status, output, error = run("undo", "--since", SINCE)
    assert (status, output, error) == (1, [], ["Error: BLOGAPI_KEEP_DAYS is 0: there is no history to undo from"])
    assert words(at(0)) == before


def test_a_time_before_the_kept_history_is_reported(run, accident, monkeypatch):
    monkeypatch.setenv("BLOGAPI_KEEP_DAYS", "1")
    status, output, error = run("undo", "--since", rfc3339(NOW - 25 * HOUR), "--key", "bad", "--dry-run")
    assert (status, output[-1]) == (1, "would be changed back 1, restored 1, moved to the trash 1, left alone 1")
    assert re.fullmatch("The history begins at 20[^ ]+Z: earlier changes cannot be undone.", error[0])
    status, output, error = run("undo", "--since", rfc3339(NOW - 23 * HOUR), "--key", "nobody-else", "--dry-run")
    assert "kept since" not in "".join(error)
