"""Nothing acknowledged is lost if the disk fails, the file disappears, or another program holds the lock."""

import os
import resource
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from blogapi.clock import rfc3339
from tests.conftest import without_id
from tests.databases import busy
from tests.invariants import sound_posts
from tests.service import BIN, Server, eventually, without_rights

pytestmark = pytest.mark.slow

POST = {"title": "A", "content": "word " * 200, "tags": ["a", "b"]}


def write(service):
    """Try to create a post; return status, Retry-After and the seconds it took."""
    begun = time.monotonic()
    status, headers, _ = service.request("POST", "/v1/posts", POST)
    return status, headers["Retry-After"], time.monotonic() - begun


def ids(service, query=""):
    return {post["id"] for post in service.request("GET", f"/v1/posts?{query}limit=1000")[2]}


def test_a_lasting_lock_costs_writers_less_than_3_s_and_readers_nothing(service):
    assert write(service)[0] == 201
    waits = []
    with busy(service.database), ThreadPoolExecutor(20) as pool:
        writes = [pool.submit(write, service) for _ in range(20)]
        while not all(write.done() for write in writes):
            waits.append(service.wait("/v1/posts")[0])
    answers = [write.result() for write in writes]
    assert [(status, retry_after) for status, retry_after, _ in answers] == [(503, "1")] * 20
    assert max(seconds for _, _, seconds in answers) < 3
    assert max(waits) < 1.5  # A writer waits two seconds.
    assert write(service)[0] == 201
    assert len(service.request("GET", "/v1/posts")[2]) == 2


def fill(service, reason):
    """Create posts until one is refused for this reason; return the acknowledged ids."""
    acknowledged = set()
    while True:
        status, _, body = service.request("POST", "/v1/posts", POST)
        if status != 201:
            assert (status, without_id(body["message"])) == (503, f"{reason}; nothing was changed")
            return acknowledged
        acknowledged.add(body["id"])


def limit_files(service, size):
    """Keep the worker from writing files beyond `size` bytes, which is as good as a full disk."""
    _, hard = resource.prlimit(service.worker, resource.RLIMIT_FSIZE)
    resource.prlimit(service.worker, resource.RLIMIT_FSIZE, (size, hard))


def test_a_disk_that_accepts_no_more_data_fails_only_the_writes(service):
    limit_files(service, 300_000)
    acknowledged = fill(service, "the database is not available")
    assert ids(service) == acknowledged
    limit_files(service, resource.RLIM_INFINITY)
    assert write(service)[0] == 201
    assert acknowledged < sound_posts(service.database).keys()


def test_a_full_disk_fails_only_the_writes_so_a_due_post_stays_scheduled(small_disk):
    with Server(small_disk / "blog.db") as service:
        later = POST | {"status": "scheduled", "published_at": rfc3339(time.time() + 10)}
        post_id = service.request("PUT", "/v1/posts/by-slug/later", later)[2]["id"]
        with pytest.raises(OSError, match="No space"):
            (small_disk / "ballast").write_bytes(bytes(shutil.disk_usage(small_disk).total))
        acknowledged = fill(service, "the disk is full") | {post_id}
        assert (ids(service), service.request("GET", "/healthz")[0]) == (acknowledged, 503)
        with pytest.raises(OSError, match="No space"):
            (small_disk / "rest").write_bytes(bytes(shutil.disk_usage(small_disk).total))
        while rfc3339(time.time()) <= later["published_at"]:
            time.sleep(0.1)
        shown = [service.request("GET", f"/v1/posts/{post_id}") for _ in range(9)]
        assert {(status, post["status"]) for status, _, post in shown} == {(200, "scheduled")}
        assert ids(service, "status=published&") == set()
        (small_disk / "ballast").unlink()
        (small_disk / "rest").unlink()
        eventually(lambda: post_id in ids(service, "status=published&"))
        assert (write(service)[0], service.request("GET", "/healthz")[0]) == (201, 200)
        assert acknowledged < sound_posts(service.database).keys()


def test_posts_can_be_deleted_for_good_on_a_full_disk(small_disk):
    subprocess.run(["mount", "--options", "remount,size=16m", small_disk], check=True)
    with Server(small_disk / "blog.db") as service:
        eventually(lambda: shutil.disk_usage(small_disk).free < 12 * 1024**2)  # The server keeps a reserve.
        (small_disk / "ballast").write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 3_000_000))
        acknowledged = []
        while created := fill(service, "the disk is full"):  # The -wal starts over until the file cannot grow.
            acknowledged += sorted(created, key=int)
        for post_id in acknowledged[:40]:
            answer = service.request("DELETE", f"/v1/posts/{post_id}?permanent=true")
            assert answer[0] == 204, answer
        eventually(lambda: write(service)[0] == 201)  # The server may be filling its reserve again.
        assert set(acknowledged[40:]) < sound_posts(service.database).keys()


@pytest.mark.parametrize(
    ("read_only", "reason"),
    [("blog.db", "this user cannot read and write {}/blog.db;"), (".", "this user cannot write to the folder {},")],
)
def test_a_command_says_whether_the_file_or_its_folder_is_read_only(tmp_path, read_only, reason):
    environ = os.environ | {"BLOGAPI_DATABASE": str(tmp_path / "blog.db")}
    subprocess.run([BIN / "blogapi", "init"], env=environ, check=True, capture_output=True)
    mode = (tmp_path / read_only).stat().st_mode
    (tmp_path / read_only).chmod(mode & 0o555)
    command = without_rights(BIN / "blogapi", "keys", "list")
    ended = subprocess.run(command, env=environ, capture_output=True, text=True)
    (tmp_path / read_only).chmod(mode)
    assert (ended.returncode, reason.format(tmp_path) in ended.stderr) == (1, True), ended.stderr


@contextmanager
def read_only(service):
    service.database.chmod(0o444)
    yield
    service.database.chmod(0o600)


@contextmanager
def moved_away(service):
    away = service.database.rename(service.database.with_name("away.db"))
    yield
    assert not service.database.exists()
    away.rename(service.database)


@pytest.mark.parametrize("fault", [read_only, moved_away])
def test_a_database_that_is_read_only_or_moved_away_fails_only_the_writes(tmp_path, fault):
    with Server(tmp_path / "blog.db", command=without_rights(BIN / "gunicorn")) as service:
        assert write(service)[0] == 201
        with fault(service):
            assert write(service)[:2] == (503, None)
            assert service.request("DELETE", "/v1/posts/1")[0] == 503
            status, _, error = service.request("GET", "/healthz")
            assert (status, without_id(error["message"])) == (503, "the database is not available; nothing was changed")
            assert len(service.request("GET", "/v1/posts")[2]) == 1
        assert service.request("GET", "/healthz")[0] == 200
        assert write(service)[0] == 201


def test_corruption_that_sqlite_reports_is_503_until_it_is_repaired(service):
    for _ in range(50):
        write(service)
    service.stop()
    sound = service.database.read_bytes()
    service.start()
    with service.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (len(sound) - 4096))
    statuses = {service.request("GET", "/v1/posts")[0], write(service)[0]}
    assert statuses == {503}
    assert service.request("GET", "/healthz")[0] == 503
    with service.database.open("r+b") as file:
        file.write(sound)
    assert len(service.request("GET", "/v1/posts")[2]) == 50
    assert write(service)[0] == 201


def test_another_database_in_its_place_gets_no_writes_until_a_restart(service):
    service.blogapi("backup", service.database.with_name("copy.db"))
    assert write(service)[0] == 201
    service.database.with_name("copy.db").replace(service.database)
    for _ in range(3):
        assert write(service)[0] == 503
        assert service.request("GET", "/healthz")[0] == 503
    assert service.request("GET", "/v1/posts")[0] == 200
    eventually(lambda: "until a restart" in service.log)
    assert service.log.count("until a restart") == 1
    service.stop()
    for leftover in service.database.parent.glob("blog.db-*"):
        leftover.unlink()
    service.start()
    assert service.request("GET", "/healthz")[0] == 200
    assert service.request("GET", "/v1/posts")[2] == []
    assert write(service)[0] == 201
