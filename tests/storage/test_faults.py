"""Faults of the machine, the database and the operator."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import without_id
from tests.databases import execute
from tests.service import BIN, Server, eventually

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

POST = {"title": "A", "content": "word " * 200, "tags": ["a", "b"]}


def create(service, **fields):
    return service.request("POST", "/v1/posts", POST | fields)


def test_a_deleted_wal_loses_nothing_and_is_logged(service):
    acknowledged = {create(service)[2]["id"] for _ in range(3)}
    service.database.with_name("blog.db-wal").unlink()
    assert service.request("GET", "/healthz")[0] == 200
    eventually(lambda: service.log.count("the -wal file of the database was deleted") == 1)
    acknowledged |= {create(service)[2]["id"] for _ in range(3)}
    service.kill()
    service.start()
    assert {post["id"] for post in service.request("GET", "/v1/posts")[2]} == acknowledged


def test_after_the_wal_is_replaced_there_are_no_writes_until_a_restart(service):
    create(service)
    wal = service.database.with_name("blog.db-wal")
    wal.with_name("copy").write_bytes(wal.read_bytes())
    wal.with_name("copy").replace(wal)
    assert create(service)[0] == 503
    assert service.request("GET", "/healthz")[0] == 503
    assert service.request("GET", "/v1/posts")[0] == 200


FAILING_SYNC = """
#include <errno.h>
#include <unistd.h>
int fdatasync(int file) { if (access(getenv("SYNC_FAILS"), F_OK) == 0) { errno = EIO; return -1; } return fsync(file); }
"""


def test_after_a_failed_sync_the_answer_says_that_the_commit_is_in_doubt(tmp_path):
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("there is no C compiler")
    source, library, switch = tmp_path / "sync.c", tmp_path / "sync.so", tmp_path / "fails"
    source.write_text("#include <stdlib.h>\n" + FAILING_SYNC)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    with Server(tmp_path / "blog.db", LD_PRELOAD=library, SYNC_FAILS=switch) as service:
        assert create(service)[0] == 201
        switch.touch()
        status, _, body = create(service)
        assert status == 503
        failed = "the commit failed and may still have taken effect; check before retrying"
        assert without_id(body["message"]) == failed
        assert service.request("GET", "/healthz")[0] == 503
        switch.unlink()
        assert service.request("GET", "/healthz")[0] == 200
        assert create(service)[0] == 201
        assert len(service.request("GET", "/v1/posts")[2]) in (2, 3)


def test_a_query_that_fails_halfway_is_503_and_the_next_one_works(service):
    for _ in range(200):
        create(service)
    service.request("GET", "/v1/posts?q=fog")  # completes the search index, so nothing else is read
    service.stop()
    sound = service.database.read_bytes()
    service.start()
    page = sound.index(b'{"id":"100"') // 4096 * 4096
    with service.database.open("r+b") as file:
        file.seek(page)
        file.write(b"\xff" * 4096)
    statuses = {service.request("GET", f"/v1/posts?limit=1000&status={status}")[0] for status in ("draft", "published")}
    assert 503 in statuses
    assert 500 not in statuses
    with service.database.open("r+b") as file:  # only this page: the server may have merged parts of the search index
        file.seek(page)
        file.write(sound[page : page + 4096])
    assert len(service.request("GET", "/v1/posts?limit=1000")[2]) == 200


def test_others_read_while_a_tag_of_many_large_posts_is_renamed(service):
    for number in range(40):
        create(service, content="x" * 1_000_000, slug=f"large-{number}")
    reads = 0
    with ThreadPoolExecutor(1) as pool:
        renamed = pool.submit(service.request, "PATCH", "/v1/tags/a", {"name": "renamed"})
        while not renamed.done():
            assert service.request("GET", "/v1/posts?limit=1")[0] == 200
            reads += 1
    assert renamed.result()[2] == {"name": "renamed", "posts": 40}
    assert reads > 3  # Otherwise, the first would wait for the whole change.
    create(service)  # While others read, nobody waits for the -wal to be truncated; the next writes do that.
    create(service)
    assert service.database.with_name("blog.db-wal").stat().st_size < 20_000_000
    tags = [{"name": "a", "posts": 2}, {"name": "b", "posts": 42}, {"name": "renamed", "posts": 40}]
    assert service.request("GET", "/v1/tags")[2] == tags


def test_a_key_that_a_stopped_terminal_does_not_show_blocks_no_write_and_is_not_created(service):
    read, write = os.pipe()
    os.set_blocking(write, False)
    while True:
        try:
            os.write(write, b"x" * 4096)
        except BlockingIOError:
            break
    os.set_blocking(write, True)
    command = [BIN / "blogapi", "keys", "create", "late"]
    process = subprocess.Popen(command, env=service.environ, stdout=write)
    os.close(write)
    waits_for = Path(f"/proc/{process.pid}/wchan")
    eventually(lambda: "pipe" in waits_for.read_text(encoding="utf-8"))
    assert create(service)[0] == 201  # If the lock were held, it would be 503 after two seconds.
    assert "late" not in service.blogapi("keys", "list").stdout
    with os.fdopen(read, "rb") as pipe:
        key = re.search("blog_[A-Za-z0-9_-]{43}", pipe.read().decode())[0]
    assert process.wait(60) == 0
    assert service.request("GET", "/v1/posts", Authorization=f"Bearer {key}")[0] == 200


def test_a_backup_of_a_damaged_database_is_refused(service, tmp_path):
    for _ in range(50):
        create(service)
    service.stop()
    sound = service.database.read_bytes()
    query = "SELECT rootpage FROM sqlite_master WHERE name = 'post_status'"
    ((index,),) = execute(service.database, query)
    with service.database.open("r+b") as file:
        file.seek((index - 1) * 4096 + 4000)
        file.write(b"\xff" * 90)
    assert service.database.read_bytes() != sound
    ended = service.blogapi("backup", tmp_path / "copy.db")
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert not list(tmp_path.glob("copy*"))


def test_a_killed_backup_does_not_block_another_and_foreign_files_stay(service, tmp_path):
    for _ in range(20):
        create(service, content="x" * 1_000_000)  # The backup takes long enough to be killed.
    part = tmp_path / "copy.db.part"
    part.write_text("somebody else's")
    process = subprocess.Popen([BIN / "blogapi", "backup", tmp_path / "copy.db"], env=service.environ)
    eventually(lambda: len(list(tmp_path.glob("copy.db.*"))) > 1 or process.poll() is not None)
    process.kill()
    process.wait()
    assert not (tmp_path / "copy.db").exists()
    assert service.blogapi("backup", tmp_path / "copy.db").returncode == 0
    assert part.read_text() == "somebody else's"
