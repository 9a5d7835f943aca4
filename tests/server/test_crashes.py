"""Nothing acknowledged is lost: the server is killed, the disk fails, the file goes away."""

import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import without_id
from tests.invariants import sound_posts
from tests.server.workers import Editor, all_at_work, check
from tests.service import BIN, Server, eventually

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

POST = {"title": "A", "content": "word " * 200, "tags": ["a", "b"]}


@pytest.mark.parametrize("victims", ["worker", "master", "both"])
def test_after_a_kill_it_has_what_it_acknowledged_and_serves_again_within_4_s(service, scale, victims):
    editors = [Editor(number) for number in range(4)]
    begun = time.monotonic()
    service.stop()
    service.start()
    most = max(4, 3 * (time.monotonic() - begun))  # on a busy machine, three times as long as a restart takes there
    for _ in range(min(10, scale * 2)):
        with all_at_work(editors, [service]):
            time.sleep(random.uniform(0.2, 0.5))
            worker, master = service.worker, service.process.pid
            for process in {"worker": [worker], "master": [master], "both": [master, worker]}[victims]:
                os.kill(process, signal.SIGKILL)
            killed = time.monotonic()
            if victims != "worker":
                service.process.wait()
                service.start()
            eventually(service.answers, most)
            assert time.monotonic() < killed + most
        check(editors, sound_posts(service.database))
    assert any(editor.deletions for editor in editors)


def write(service):
    """Try to create a post; return status, Retry-After and the seconds it took."""
    begun = time.monotonic()
    status, headers, _ = service.request("POST", "/v1/posts", POST)
    return status, headers["Retry-After"], time.monotonic() - begun


def ids(service):
    return {post["id"] for post in service.request("GET", "/v1/posts?limit=1000")[2]}


def test_a_lock_that_lasts_costs_writers_3_s_and_readers_nothing(service):
    assert write(service)[0] == 201
    other = sqlite3.connect(service.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waits = []
    with ThreadPoolExecutor(20) as pool:
        writes = [pool.submit(write, service) for _ in range(20)]
        while not all(each.done() for each in writes):
            waits.append(service.wait("/v1/posts")[0])
    answers = [each.result() for each in writes]
    assert [(status, retry_after) for status, retry_after, _ in answers] == [(503, "1")] * 20
    assert max(seconds for _, _, seconds in answers) < 3
    assert max(waits) < 1  # A writer waits for two.
    other.execute("ROLLBACK")
    other.close()
    assert write(service)[0] == 201
    assert len(service.request("GET", "/v1/posts")[2]) == 2


def test_a_lock_that_is_gone_in_time_costs_only_time(service):
    other = sqlite3.connect(service.database, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    threading.Timer(0.5, other.execute, ["COMMIT"]).start()
    status, _, seconds = write(service)
    other.close()
    assert status == 201
    assert seconds > 0.4


def fill(service, reason):
    """Create posts until one is refused for this reason; return the ids acknowledged."""
    acknowledged = set()
    while True:
        status, _, body = service.request("POST", "/v1/posts", POST)
        if status != 201:
            assert (status, without_id(body["message"])) == (503, f"{reason}; nothing was changed")
            return acknowledged
        acknowledged.add(body["id"])


def limit_files(service, size):
    """Let the worker write no file beyond `size` bytes, which is as good as a full disk."""
    _, hard = resource.prlimit(service.worker, resource.RLIMIT_FSIZE)
    resource.prlimit(service.worker, resource.RLIMIT_FSIZE, (size, hard))


def test_a_disk_that_takes_no_more_costs_only_the_writes(service):
    limit_files(service, 300_000)
    acknowledged = fill(service, "the database is not available")
    assert ids(service) == acknowledged
    limit_files(service, resource.RLIM_INFINITY)
    assert write(service)[0] == 201
    assert acknowledged < sound_posts(service.database).keys()


def test_a_full_disk_costs_only_the_writes(small_disk):
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 1_000_000)
    with Server(small_disk / "blog.db") as service:
        acknowledged = fill(service, "the disk is full")
        assert ids(service) == acknowledged
        assert write(service)[0] == service.request("GET", "/healthz")[0] == 503
        ballast.unlink()
        assert service.request("GET", "/healthz")[0] == 200
        assert write(service)[0] == 201
        assert acknowledged < sound_posts(service.database).keys()


def without_rights(*command):
    """A command that may not write to everything: root may, unless it gives that up."""
    if not os.geteuid():
        if not shutil.which("setpriv"):
            pytest.skip("root cannot give up its rights without setpriv")
        return ["setpriv", "--bounding-set", "-dac_override", "--inh-caps", "-dac_override", *command]
    return command


@pytest.mark.parametrize(
    ("read_only", "reason"),
    [("blog.db", "this user cannot read and write the file"), (".", "this user cannot write the folder {}, where")],
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


def test_a_read_only_database_costs_only_the_writes(tmp_path):
    with Server(tmp_path / "blog.db", command=without_rights(BIN / "gunicorn")) as service:
        assert write(service)[0] == 201
        service.database.chmod(0o444)
        assert write(service)[0] == 503
        assert service.request("GET", "/healthz")[0] == 503
        assert len(service.request("GET", "/v1/posts")[2]) == 1
        service.database.chmod(0o600)
        assert write(service)[0] == 201


def test_corruption_that_sqlite_reports_is_503_until_it_is_mended(service):
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


def test_a_database_that_was_moved_away_takes_no_writes_until_it_is_back(service):
    assert write(service)[0] == 201
    away = service.database.with_name("away.db")
    service.database.rename(away)
    assert write(service)[:2] == (503, None)
    assert service.request("DELETE", "/v1/posts/1")[0] == 503
    status, _, error = service.request("GET", "/healthz")
    assert (status, without_id(error["message"])) == (503, "the database is not available; nothing was changed")
    assert len(service.request("GET", "/v1/posts")[2]) == 1
    assert not service.database.exists()
    away.rename(service.database)
    assert service.request("GET", "/healthz")[0] == 200
    assert write(service)[0] == 201


def test_another_database_in_its_place_takes_no_writes_until_a_restart(service):
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
