"""The real server: how it starts, what it refuses, how it stops."""

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.cases import cases
from tests.service import BIN, CHECKOUT, Server, eventually, free_port, read_answer, without_rights

pytestmark = pytest.mark.slow


def refusal(tmp_path, *arguments, command=(BIN / "gunicorn",), **environ):
    """Start a server that must not start; return its exit status and the last line it wrote."""
    variables = os.environ | {"BLOGAPI_DATABASE": str(tmp_path / "blog.db"), "PORT": str(free_port())} | environ
    options = {"cwd": CHECKOUT, "env": variables, "capture_output": True, "text": True, "timeout": 60}
    ended = subprocess.run([*command, *arguments], **options)
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stderr.rstrip("\n").rpartition("\n")[2]


ONE_WORKER = (
    "blogapi: gunicorn must use blogapi's worker class, and WEB_CONCURRENCY workers; otherwise, the rate limit would "
    "be multiplied. See GUNICORN_CMD_ARGS and the command line"
)


@cases(
    ("given", "line"),
    ("BLOGAPI_RATE_LIMIT=ten", "blogapi: BLOGAPI_RATE_LIMIT: must be a whole number from 1 to 999999999, not 'ten'"),
    ("HOST=a..b", "not a valid host name; set HOST or PORT"),
    (
        "BLOGAPI_DATABASE=/dev/null",
        "cannot use the database /dev/null: it is not a regular file; set BLOGAPI_DATABASE to a file",
    ),
    ("GUNICORN_CMD_ARGS=--workers 2", ONE_WORKER),
    ("--preload", ONE_WORKER),
    ("--worker-class=gthread", ONE_WORKER),
)
def test_an_unusable_setting_or_option_ends_it_with_one_clear_line(tmp_path, given, line):
    is_option = given.startswith("--")
    status, last = refusal(tmp_path, given) if is_option else refusal(tmp_path, **dict([given.split("=", 1)]))
    assert status != 0
    assert last.endswith(line)


def test_it_tells_systemd_that_it_is_ready_unless_it_cannot_start(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        settings = {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        assert refusal(tmp_path, BLOGAPI_RATE_LIMIT="ten", **settings)[0] != 0
        status, last = refusal(tmp_path, HOST="192.0.2.1", **settings)
        assert (status != 0, last.endswith("Cannot assign requested address; set HOST or PORT")) == (True, True)
        systemd.setblocking(False)
        with pytest.raises(BlockingIOError):
            systemd.recv(1000)
        with Server(tmp_path / "blog.db", **settings):
            assert systemd.recv(1000).startswith(b"READY=1\n")


def test_at_a_low_priority_that_it_may_not_raise_it_runs_threads_at_the_same(tmp_path):
    with Server(tmp_path / "blog.db", command=without_rights("nice", "-n", "15", BIN / "gunicorn")) as service:
        assert service.request("POST", "/v1/posts", {"title": "A", "content": "B", "tags": ["c"]})[0] == 201
        for path in ("/v1/tags", "/v1/posts?q=a&sort=relevance", "/v1/images"):
            assert service.request("GET", path)[0] == 200, path
        threads = Path(f"/proc/{service.worker}/task").iterdir()
        niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + 15, 19)
        assert {os.getpriority(os.PRIO_PROCESS, int(thread.name)) for thread in threads} == {niceness}


def test_a_signal_does_not_start_a_second_worker(server):
    worker = server.worker
    for number in (signal.SIGHUP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGUSR2):
        server.process.send_signal(number)
        eventually(lambda name=number.name: f"{name} is ignored" in server.log)
    assert server.log.count("Booting worker") == 1
    assert server.worker == worker


def test_a_server_that_may_open_too_few_files_is_refused(tmp_path):
    status, last = refusal(tmp_path, command=("sh", "-c", f'ulimit -n 64; exec "{BIN / "gunicorn"}"'))
    assert (status, last) == (1, "blogapi: the limit on open files must be at least 256, not 64; see ulimit -Hn")


def test_a_second_server_on_a_database_or_one_with_two_names_is_refused(server, tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(server.database)
    used = f"blogapi: another server is using the database {link}"
    assert refusal(tmp_path, BLOGAPI_DATABASE=str(link)) == (1, used)
    link.unlink()
    link.hardlink_to(server.database)
    two_names = f"blogapi: the database {link} has several names (hard links): remove the other names, or use a copy"
    assert refusal(tmp_path, BLOGAPI_DATABASE=str(link)) == (1, two_names)
    link.unlink()


def test_it_warns_of_a_database_that_others_can_read(service):
    assert service.stop() == 0
    assert "chmod" not in service.log
    service.database.chmod(0o640)
    service.start()
    line = f"[WARNING] other users can read the database: chmod 600 {service.database}"
    eventually(lambda: line in service.log)
    assert service.database.stat().st_mode & 0o777 == 0o640


def test_it_serves_on_ipv6(tmp_path):
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
    with Server(tmp_path / "blog.db", HOST="::1") as service:
        assert service.request("GET", "/v1/posts")[0] == 200


def test_creating_regenerating_or_revoking_a_key_takes_effect_in_a_running_server(server):
    def status(key):
        return server.request("GET", "/v1/posts", Authorization=f"Bearer {key}")[0]

    first = server.blogapi("keys", "create", "laptop").stdout.strip()
    assert status(first) == 200
    second = server.blogapi("keys", "regenerate", "laptop").stdout.strip()
    assert (status(first), status(second)) == (401, 200)
    assert server.blogapi("keys", "revoke", "laptop").returncode == 0
    assert status(second) == 401


def status_of(process, name):
    """A line from /proc about a process."""
    return re.search(rf"^{name}:\s*(\w+)", Path(f"/proc/{process}/status").read_text(encoding="utf-8"), re.MULTILINE)[1]


def test_requests_sent_before_the_shutdown_are_answered_even_if_not_yet_accepted(service, opened):
    request = service.head("GET /healthz HTTP/1.1")
    used = opened.enter_context(service.connect())
    used.sendall(request)
    assert read_answer(used)[0] == 200
    worker = service.worker
    os.kill(worker, signal.SIGSTOP)
    eventually(lambda: status_of(worker, "State") == "T")
    sockets = [used, *(opened.enter_context(service.connect()) for _ in range(100))]  # It accepts 64 at a time.
    for sock in sockets:
        sock.sendall(request)
    service.process.send_signal(signal.SIGTERM)
    eventually(lambda: int(status_of(worker, "ShdPnd"), 16) >> (signal.SIGTERM - 1) & 1)  # for when it continues
    time.sleep(0.2)  # longer than it waits between two looks for signals
    os.kill(worker, signal.SIGCONT)
    answers = [read_answer(sock) for sock in sockets]
    assert {(status, headers["Connection"]) for status, headers, _ in answers} == {(200, "close")}
    assert service.process.wait(60) == 0


def test_while_it_drains_it_serves_and_only_readyz_says_that_it_stops(tmp_path):
    with Server(tmp_path / "blog.db", BLOGAPI_DRAIN_SECONDS=60) as service:
        assert service.request("GET", "/readyz")[2] == {"status": "ok"}
        service.process.send_signal(signal.SIGTERM)
        eventually(lambda: not service.answers("/readyz"))
        assert service.request("GET", "/readyz")[2] == {"error": 503, "message": "the service is stopping"}
        assert service.answers("/healthz")
        status, headers, _ = service.request("POST", "/v1/posts", {"title": "A", "content": "B"})
        assert (status, headers["Connection"]) == (201, "close")
        os.kill(service.worker, signal.SIGINT)
        assert service.process.wait(30) == 0
    assert '"GET /readyz" 503' in service.log
    assert '"GET /readyz" 200' not in service.log


def test_a_command_does_not_remove_the_wal_of_a_running_server_after_a_tag_was_renamed(server):
    post = server.request("POST", "/v1/posts", {"title": "A", "content": "B", "tags": ["old name"]})[2]
    assert server.request("PATCH", "/v1/tags/old%20name", {"name": "new name"})[0] == 200
    assert server.request("DELETE", f"/v1/posts/{post['id']}?permanent=true")[0] == 204
    wal = server.database.with_name("blog.db-wal")
    before = wal.stat().st_ino
    assert server.blogapi("keys", "list").returncode == 0
    assert wal.stat().st_ino == before


def test_links_to_the_owners_page_lead_to_the_running_server(service):
    link = rf"http://127\.0\.0\.1:{service.port}/settings/open\?link=\S+\n"
    service.environ["PORT"] = "1"  # for the command line
    assert re.fullmatch(link, service.blogapi("login").stdout)
    service.environ["BLOGAPI_URL"] = "https://blog.example.org"
    assert service.blogapi("login").stdout.startswith("https://blog.example.org/settings/open")
    assert service.stop() == 0
    assert list(service.database.parent.glob("*.url")) == []


def test_a_stop_while_the_worker_starts_ends_the_worker_too(tmp_path):
    environ = os.environ | {"BLOGAPI_DATABASE": str(tmp_path / "blog.db"), "PORT": str(free_port())}
    with subprocess.Popen([BIN / "gunicorn"], cwd=CHECKOUT, env=environ, stderr=subprocess.PIPE, text=True) as process:
        next(line for line in process.stderr if "Booting worker" in line)
        process.terminate()
        assert "Worker exiting" in process.stderr.read()
    assert process.returncode == 0
    assert not (tmp_path / "blog.db-wal").exists()


# Systems other than Linux: this removes functions that only Linux has

ELSEWHERE = """
import fcntl, resource, socket
del fcntl.F_OFD_SETLK, fcntl.F_OFD_SETLKW, fcntl.F_OFD_GETLK, socket.TCP_NOTSENT_LOWAT
socket.__all__.remove("TCP_NOTSENT_LOWAT")
set_limit = resource.setrlimit


def refuse(kind, limits):
    if limits[0] > 10_240:
        raise ValueError("current limit exceeds maximum limit")
    set_limit(kind, limits)


resource.setrlimit = refuse
"""


def test_it_serves_and_refuses_a_second_server(tmp_path, serve):
    (tmp_path / "sitecustomize.py").write_text(ELSEWHERE)
    elsewhere = {"PYTHONPATH": str(tmp_path)}
    service = serve(**elsewhere)
    assert service.request("POST", "/v1/posts", {"title": "A", "content": "B"})[0] == 201
    assert service.request("GET", "/v1/posts?q=B")[2][0]["title"] == "A"
    link = tmp_path / "link.db"
    link.symlink_to(service.database)
    line = f"blogapi: another server is using the database {link}"
    assert refusal(tmp_path, BLOGAPI_DATABASE=str(link), **elsewhere) == (1, line)
    assert service.stop() == 0
    service.start()
    assert service.request("GET", "/healthz")[0] == 200
    service.kill()
    assert service.database.with_name("blog.db.lock").stat().st_size == 0
