"""Fixtures that keep a folder and a service in sync."""

import json
import os
import shutil
import subprocess
import time

import pytest
from click.testing import CliRunner

from blogapi import cli, copy
from blogapi.engines import engine_for
from tests.blogs import write_files
from tests.service import BIN, Server

GONE_THERE = "gone there {}: pull --delete removes the file, push --recreate creates the post again"
CHANGED_THERE = "changed there {}: pull writes it"
CHANGED_HERE = "changed here {}: push sends it"


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("service") / "blog.db") as service:
        yield service


@pytest.fixture(autouse=True)
def own_states(tmp_path, monkeypatch):
    """The user's own folder for copies of states, outside of all synced ones."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ".own"))
    return tmp_path / ".own/blogapi"


@pytest.fixture
def blog(shared):
    """A service without posts."""
    for post in shared.request("GET", "/v1/posts?limit=1000")[2]:
        assert shared.request("DELETE", f"/v1/posts/{post['id']}?permanent=true")[0] == 204
    return shared


@pytest.fixture
def run(blog, monkeypatch):
    """Run a command with the key of the service; return the exit status and the lines of its output."""
    return command_runner(blog, monkeypatch)


def command_runner(blog, monkeypatch):
    """Return a function that runs a command against a service."""
    monkeypatch.setenv("BLOGAPI_KEY", blog.key)
    monkeypatch.setenv("BLOGAPI_REMOTE", f"http://127.0.0.1:{blog.port}")

    def run(*arguments, key=None, to=None, on=None):
        environ = {"BLOGAPI_KEY": key or blog.key} | ({"BLOGAPI_REMOTE": to} if to else {})
        if on:  # another machine, which has another state folder
            environ["XDG_STATE_HOME"] = f"{os.environ['XDG_STATE_HOME']}-{on}"
        result = CliRunner().invoke(cli.command_line, [*map(str, arguments)], env=environ)
        if isinstance(result.exception, ValueError):  # `main` prints these.
            return 1, [*result.output.splitlines(), str(result.exception)]
        assert isinstance(result.exception, SystemExit | None), result.exception
        return result.exit_code, result.output.splitlines()

    return run


@pytest.fixture
def folder(tmp_path):
    """Write files into the folder; return it."""
    return lambda **texts: write_files(tmp_path / "folder", {f"{name}.md": text for name, text in texts.items()})


@pytest.fixture
def synced(run, folder):
    """Write files into the folder, and push it; return it."""

    def write_and_push(**texts):
        here = folder(**texts)
        run("push", here)
        return here

    return write_and_push


@pytest.fixture
def change(blog):
    """Change the post with this slug on the service, as another client would; return it."""

    def change(slug, /, **fields):
        status, _, post = blog.request("PATCH", f"/v1/posts/by-slug/{slug}", fields)
        assert status == 200, post
        return post

    return change


@pytest.fixture
def there(blog):
    """All posts on the service, by slug."""
    return lambda: {post["slug"]: post for post in blog.request("GET", "/v1/posts?limit=1000")[2]}


def texts(posts):
    return {slug: post["content"] for slug, post in posts.items()}


def next_second():
    """Wait for the next second, because times within the same second do not show the order of changes."""
    time.sleep(1.01 - time.time() % 1)


def take_backup(service, backup):
    next_second()
    copy.backup(engine_for(service.database), backup)
    next_second()


def restore_backup(service, backup, create=None):
    """Restore a backup; on PostgreSQL, into the new database that `create` returns."""
    next_second()
    service.kill()
    if create:
        service.database, old = create(), {"BLOGAPI_DATABASE": str(backup)}
        subprocess.run([BIN / "blogapi", "copy", service.database], env=service.environ | old, check=True)
        service.environ["BLOGAPI_DATABASE"] = service.database
    else:
        for file in service.database.parent.glob(f"{service.database.name}*"):
            file.unlink()
        shutil.copy(backup, service.database)
    service.start()
    next_second()


def counts(created=0, updated=0, unchanged=0, conflict=0, failed=0, **others):
    counted = {"created": created, "updated": updated, "unchanged": unchanged, "conflict": conflict, "failed": failed}
    return ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in (counted | others).items())


def read_state(folder):
    """Return the first line of the state, and the entries in the others."""
    head, *entries = map(json.loads, (folder / ".blogapi.json").read_text().splitlines())
    return head, dict(entries)


def write_state(folder, head, entries):
    (folder / ".blogapi.json").write_text("".join(f"{json.dumps(line)}\n" for line in (head, *entries.items())))


def record(folder, name="a.md", **fields):
    """Change what the state records about a file."""
    head, entries = read_state(folder)
    write_state(folder, head, entries | {name: entries[name] | fields})


def contents(folder):
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in sorted(files.items()) if name != ".blogapi.json"}


def edit(file, old, new):
    text = file.read_bytes().decode()
    assert text.count(old) == 1
    file.write_bytes(text.replace(old, new).encode())
