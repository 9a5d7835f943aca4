"""docs/several-machines.md: its blocks, run exactly as written."""

import os
import re
import signal
import subprocess
from subprocess import PIPE, STDOUT

import pytest

from blogapi.posts import storage as posts
from blogapi.storage.models import Author
from tests.databases import opened
from tests.invariants import sound_posts
from tests.pages import Page
from tests.postgresql.programs import PROGRAMS, PostgresqlServer
from tests.service import CHECKOUT, add_key, free_port

pytestmark = pytest.mark.slow

PAGE = Page("docs/several-machines.md")
(SET_UP,) = PAGE.take("Setting it up")
(MOVE,) = PAGE.take("Moving to PostgreSQL, and back")
(BACKUP,) = PAGE.take("Backups")


@pytest.fixture
def page_server():
    """A PostgreSQL server with an empty database, which the page assumes to exist."""
    with PostgresqlServer() as server:
        server.execute("CREATE DATABASE blogapi")
        yield server


@pytest.fixture
def shell(page_server, tmp_path):
    """Run lines from the page in a shell, in a folder of the test's own."""
    environ = os.environ | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "PORT": str(free_port())}
    environ |= {"PGHOST": "127.0.0.1", "PGPORT": str(page_server.port), "PGUSER": "blogapi"}

    def start(script):
        script = script.replace("@db.example.org/", f"@127.0.0.1:{page_server.port}/")
        script = re.sub(r"\b(\w+\.(?:db|sql))", rf"{tmp_path}/\1", script)
        command = ["bash", "-euc", script]
        return subprocess.Popen(command, cwd=CHECKOUT, env=environ, stdout=PIPE, stderr=STDOUT, text=True)

    return start


def test_the_block_on_setting_it_up_works(shell):
    *_, serve = SET_UP.splitlines()
    process = shell(SET_UP.replace(serve, f"export {serve.replace(' ', '; exec ', 1)}"))
    lines = []
    while sum("Booting worker" in line for line in lines) < 2:
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    process.send_signal(signal.SIGTERM)
    assert "PASSWORD" not in "".join(lines) + process.communicate(timeout=60)[0]
    assert process.returncode == 0


def test_the_blocks_on_moving_and_backups_work(shell, page_server, tmp_path):
    def run(script):
        process = shell(script)
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output

    with opened(tmp_path / "blog.db") as database:
        add_key(database, "mine")
        database.write(posts.add, {"title": "A", "content": "x", "status": "published", "tags": ["a"]}, Author("first"))
    page_server.execute("DROP DATABASE blogapi")
    run(MOVE)
    dump, restore = BACKUP.splitlines()
    run(dump)
    page_server.execute("DROP DATABASE blogapi")
    run(restore)
    expected = sound_posts(tmp_path / "blog.db")
    assert len(expected) == 1
    assert sound_posts(tmp_path / "back.db") == sound_posts(page_server.url("blogapi")) == expected


def test_every_block_of_the_page_is_run():
    assert PAGE.forgotten == []
