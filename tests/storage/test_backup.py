"""blogapi backup, and restoring it."""

import errno
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from blogapi.copy import backup
from blogapi.storage.errors import Unavailable
from tests.cli.conftest import run_command
from tests.databases import execute, opened
from tests.invariants import sound_posts

pytestmark = pytest.mark.sqlite


def test_a_backup_while_the_server_writes_is_consistent_and_overwrites_nothing(service, tmp_path, scale):
    stop, backups = threading.Event(), 2 * min(scale, 10)
    acknowledged = []

    def write():
        while not stop.is_set():
            acknowledged.append(service.request("POST", "/v1/posts", {"title": "A", "content": "B", "tags": ["c"]})[2])

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for number in range(backups):
                before = len(acknowledged)
                target = tmp_path / f"copy{number}.db"
                assert service.blogapi("backup", target).returncode == 0
                assert before <= len(sound_posts(target)) <= len(acknowledged) + 1
                assert stat.S_IMODE(target.stat().st_mode) == 0o600
        finally:
            stop.set()
        writing.result()
    assert {path.name for path in tmp_path.glob("copy*")} == {f"copy{number}.db" for number in range(backups)}
    before = target.read_bytes()
    ended = service.blogapi("backup", target)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"blogapi: cannot write the backup {target}: File exists\n"
    assert target.read_bytes() == before


def test_a_backup_onto_a_full_disk_names_the_target_and_leaves_nothing(database, add, small_disk):
    for number in range(30):
        add(content=f"{number}" * 50_000)
    with pytest.raises(Unavailable, match=f"to {small_disk}/blog.db: database or disk is full$"):
        backup(database.engine, small_disk / "blog.db")
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS])
def test_a_backup_needs_no_hard_links(database, tmp_path, monkeypatch, number):
    def link(source, target):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", link)
    target = tmp_path / "copy.db"
    backup(database.engine, target)
    assert execute(target, "SELECT count(*) FROM post") == [(0,)]
    assert [each.name for each in tmp_path.glob("copy*")] == ["copy.db"]
    target.write_text("precious")
    with pytest.raises(FileExistsError):
        backup(database.engine, target)
    assert target.read_text() == "precious"


def test_a_backup_of_an_unreleased_version_works_and_leaves_it_alone(tmp_path, monkeypatch):
    with opened(tmp_path / "blog.db"):
        pass
    for change in ("PRAGMA user_version = 4", "ALTER TABLE post_tag DROP COLUMN name"):
        execute(tmp_path / "blog.db", change)
    monkeypatch.setenv("BLOGAPI_DATABASE", str(tmp_path / "blog.db"))
    assert run_command("backup", tmp_path / "copy.db")[0] == 0
    (refused,) = run_command("keys", "list")[2]
    assert refused.endswith("export its posts with the old program, and import them with this one")
    for name in ("blog.db", "copy.db"):
        assert execute(tmp_path / name, "PRAGMA user_version") == [(4,)]
