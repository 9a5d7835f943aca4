"""The log: its lines, what it must not contain, and what happens if nobody reads it."""

import json
import logging
import os
import re
import signal
import subprocess
import sys

import pytest

from blogapi.server.log import JsonFormatter, printable_target
from tests.cases import cases
from tests.service import BIN, CHECKOUT, Server, eventually, free_port, in_batches

TIME = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
REQUEST_LINE = re.compile(TIME + r' 127\.0\.0\.1 (-|tests) "(-|[A-Z]+ [^"]*)" \d{3} \d+ \d+\.\dms( \(.+\))?')
OTHER_LINE = re.compile(TIME + r" \[\d+\] \[[A-Z]+\] .*")
KEY = "blog_" + "k" * 43

WITHOUT_CLOCK = """
import time
def sleep(seconds):
    raise OSError("the clock does not work")
time.sleep = sleep
from gunicorn.app.wsgiapp import run
run(prog="gunicorn")
"""


@cases(
    ("target", "logged"),
    ("/v1/posts?limit=1&tag=a%20b", "/v1/posts?limit=1&tag=a%20b"),
    (f"/{KEY}", "/blog_[masked]"),
    (f"/{KEY[:-1]}", "/blog_[masked]"),
    (f"/?key={KEY.replace('_', '%5F')}&a=%20", "/?key=blog_[masked]&a=%20"),
    (f"/?%62log_{KEY[5:]}", "/?blog_[masked]"),
    (f"/?%0A{KEY}", "/?%0Ablog_[masked]"),
    ("/" + "x" * 980 + KEY, "/" + "x" * 980 + "blog_[masked]"),
    ("/" + "x" * 996 + KEY, "/" + "x" * 996 + "blo"),
    ("/whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3J9hMvQ1yQo=", "/whsec_[masked]"),
    ("/whsec_C2FVsBQI%2Fscc%2B", "/whsec_[masked]"),
    ("/whsec_abc+/=", "/whsec_[masked]"),
    ('/"', "/%22"),
)
def test_a_target_is_logged_without_keys_and_truncated(target, logged):
    assert printable_target(target) == logged


def test_each_request_is_one_line_in_the_same_format_without_control_characters(service):
    service.request("GET", "/v1/posts")
    service.raw(b"GET /v1/posts\r\n\r\n")
    for target in (b"/%0a%22", b'/"', b"/\x1b]0;title\x07"):
        service.raw(b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n\r\n")
    service.raw(b"\0\r\n\r\n")
    service.request("POST", "/v1/posts?strange", {"title\n": 1})
    service.process.send_signal(signal.SIGHUP)
    eventually(lambda: "SIGHUP is ignored" in service.log)
    service.stop()
    lines = service.log.splitlines()
    requests = [line for line in lines if REQUEST_LINE.fullmatch(line)]
    assert [line for line in lines if not (line in requests or OTHER_LINE.fullmatch(line))] == []
    assert [line.split('"')[1] for line in requests if "healthz" not in line] == [
        *("GET /v1/posts", "-", "GET /%0a%22", "GET /%22", r"GET /\u001b]0;title\u0007", "-", "POST /v1/posts?strange")
    ]
    assert lines[-1].endswith("Shutting down: Master")
    assert not set(service.log) & set("\x1b\x07")


@pytest.fixture
def reader(tmp_path):
    """The reading end of a pipe to which a service logs."""
    os.mkfifo(tmp_path / "blog.log")
    with open(tmp_path / "blog.log", "r+b", buffering=0) as reader:
        yield reader


@pytest.fixture
def piped(tmp_path, reader):
    program = "from blogapi.server import log; log.MAX_WAITING //= 10; from gunicorn.app.wsgiapp import run; run()"
    with Server(tmp_path / "blog.db", command=(sys.executable, "-c", program)) as service:
        yield service


@pytest.mark.slow
def test_a_log_that_nobody_reads_stops_nothing_and_does_not_delay_the_shutdown(piped, reader):
    target = "/healthz?" + "x" * 900
    with piped.connect() as sock:  # 64 KiB are in the pipe, and 10,000 / 10 lines are queued.
        in_batches(sock, [piped.head(f"GET {target} HTTP/1.1")] * 1200, 200)
    piped.process.send_signal(signal.SIGHUP)  # makes gunicorn's master write a line, too
    assert piped.request("GET", "/v1/posts")[0] == 200
    text = b""
    while b"lines were not logged" not in text:
        text = text[-10_000:] + reader.read(65536)
    assert int(re.search(rb"\[WARNING\] (\d+) lines were not logged", text)[1]) > 50
    piped.request("GET", target)
    while b"healthz" not in text.rpartition(b"not logged")[2]:
        text = text[-10_000:] + reader.read(65536)
    with piped.connect() as sock:
        in_batches(sock, [piped.head(f"GET {target} HTTP/1.1")] * 100, 200)
    assert piped.stop() == 0


@pytest.mark.slow
def test_a_log_whose_reader_is_gone_does_not_stop_the_service(piped, reader):
    reader.close()
    for _ in range(3):
        piped.process.send_signal(signal.SIGHUP)
        assert piped.request("GET", "/v1/posts")[0] == 200
    assert piped.stop() == 0


@pytest.mark.slow
def test_lines_in_the_journal_of_systemd_have_no_time_of_their_own(tmp_path):
    log = tmp_path / "blog.log"
    log.touch()
    status = log.stat()
    with Server(tmp_path / "blog.db", JOURNAL_STREAM=f"{status.st_dev}:{status.st_ino}") as service:
        service.request("GET", "/v1/posts")
        eventually(lambda: '127.0.0.1 tests "GET /v1/posts" 200' in service.log)
    assert all(re.match(r"127\.0\.0\.1 |\[\d+\] \[[A-Z]+\] ", line) for line in log.read_text().splitlines())


@pytest.mark.slow
def test_each_line_can_be_json(tmp_path):
    with Server(tmp_path / "blog.db", BLOGAPI_LOG_FORMAT="json") as service:
        service.request("GET", "/v1/posts/x")
        service.raw(b"\0\r\n\r\n")
        service.raw(b"GET /\x1b\x7f%22\xe2\x80\xae HTTP/1.1\r\nHost: a\r\n\r\n")
        service.process.send_signal(signal.SIGHUP)
        eventually(lambda: "SIGHUP is ignored" in service.log)
        service.stop()
        lines = [json.loads(line) for line in service.log.splitlines()]
    assert all(re.fullmatch(TIME, line.pop("time")) for line in lines)
    requests = [line for line in lines if "status" in line and line.get("target") != "/healthz"]
    assert all(line.pop("milliseconds") >= 0 for line in requests)
    common = {"level": "info", "address": "127.0.0.1"}
    expected = common | {"key": "tests", "method": "GET", "target": "/v1/posts/x", "status": 404}
    assert requests[0] == expected | {"bytes": requests[0]["bytes"]}
    assert requests[1]["cause"].startswith("the request line must be")
    assert not {"key", "method", "target"}.intersection(requests[1])
    assert (requests[2]["status"], requests[2]["target"]) == (400, "/\x1b\x7f%22%E2%80%AE")
    ignored = next(line for line in lines if "SIGHUP" in line.get("message", ""))
    assert ignored.pop("process") == service.process.pid
    assert ignored == {"level": "warning", "message": "SIGHUP is ignored; restart the service instead"}


@pytest.mark.slow
def test_at_the_level_error_only_failures_are_logged(tmp_path):
    with Server(tmp_path / "blog.db", BLOGAPI_LOG_LEVEL="error") as service:
        service.request("GET", "/v1/posts")
        service.raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        (tmp_path / "blog.db").unlink()
        assert service.request("POST", "/v1/posts", {"title": "a", "content": "b"})[0] == 503
        service.stop()
        lines = service.log.splitlines()
    assert '127.0.0.1 tests "POST /v1/posts" 503 ' in lines[-1]
    assert all(re.match(f"{TIME} .([0-9]+). .ERROR. ", line) for line in lines[:-1])


def test_an_error_in_json_has_its_traceback_in_the_same_line():
    try:
        raise ValueError("blog\nof\u202e")
    except ValueError:
        record = logging.LogRecord("blogapi", logging.ERROR, "", 0, "failed: %s", ("x",), sys.exc_info())
    line = JsonFormatter().format(record)
    fields = json.loads(line)
    assert (fields["level"], fields["process"], fields["message"]) == ("error", os.getpid(), "failed: x")
    assert fields["traceback"].endswith("ValueError: blog\nof\u202e")
    assert line.isascii()
    assert "\n" not in line


@pytest.mark.slow
def test_it_serves_with_closed_standard_files(tmp_path):
    command = ("sh", "-c", f'exec "{BIN / "gunicorn"}" <&- >&- 2>&-')
    with Server(tmp_path / "blog.db", command=command) as service:
        with service.connect() as sock:
            for _ in range(2):
                sock.sendall(service.head("GET /v1/posts HTTP/1.1"))
                assert sock.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")
        assert service.stop() == 0


@pytest.mark.slow
def test_a_worker_that_cannot_start_ends_the_service_with_the_reason_once(tmp_path):
    (tmp_path / "broken.py").write_text("def app(): ...\n\n\napp.extensions = {}\n")
    environ = os.environ | {"BLOGAPI_DATABASE": str(tmp_path / "blog.db"), "PORT": str(free_port())}
    command = [BIN / "gunicorn", "--pythonpath", tmp_path, "broken:app"]
    ended = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 3
    assert ended.stderr.count("KeyError: 'background'") == 1
    assert ended.stderr.count("Booting worker") == 1


@pytest.mark.slow
def test_an_error_at_the_start_is_logged_even_if_the_clock_does_not_work(tmp_path):
    environ = os.environ | {"BLOGAPI_DATABASE": str(tmp_path / "blog.db"), "PORT": str(free_port())}
    command = [sys.executable, "-c", WITHOUT_CLOCK]
    ended = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, "OSError: the clock does not work" in ended.stderr) == (1, True), ended.stderr


def test_keys_secrets_and_urls_are_in_no_log(serve, receiver):
    service = serve(BLOGAPI_WEBHOOK_PRIVATE="true")
    webhook = service.request("POST", "/v1/webhooks", {"url": f"{receiver.url}?token=hidden"})[2]
    service.raw(f"GET /{service.key}\r\n\r\n".encode())  # The line is malformed, so no target is logged.
    for name in (f"v1/webhooks/{webhook['secret']}", f"v1/posts?key={service.key}", service.key.replace("_", "%5F")):
        service.request("GET", f"/{name}")
    receiver.status = 500
    service.request("POST", "/v1/webhooks/1/ping")
    eventually(lambda: receiver.messages)
    service.stop()
    assert webhook["secret"][6:-1] not in service.log
    assert "hidden" not in service.log
    assert service.key[5:] not in service.log
    assert (service.log.count("whsec_[masked]"), service.log.count("blog_[masked]")) == (1, 2)
