"""Operating the service: stopping it, watching it, running it under systemd."""

import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time
from contextlib import suppress

import pytest

from tests.conftest import without_id
from tests.databases import busy
from tests.service import CHECKOUT, eventually, read_answer

BODY = b'{"title": "A", "content": "B"}'
DEPLOYING = (CHECKOUT / "docs/deploying.md").read_text()


@pytest.fixture
def service(serve):
    return serve(measured=True)


def leftovers(service):
    return {path.name for path in service.log_file.parent.glob("blog.db*")} - {"blog.db"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.sqlite
def test_when_stopped_it_finishes_complete_requests_and_closes_the_others(service, number):
    request = service.creation(BODY)
    idle, half_header, half_body, complete = (service.connect() for _ in range(4))
    with busy(service.database):
        half_header.sendall(request[:50])
        half_body.sendall(request[:-20])
        complete.sendall(request)
        assert service.request("GET", "/v1/posts")[0] == 200  # By now the others are waiting.
        begun = time.monotonic()
        service.process.send_signal(number)
        assert idle.recv(1) == half_header.recv(1) == b""
        status, headers, error = read_answer(half_body)
        assert (status, headers["Retry-After"], headers["Connection"]) == (503, "1", "close")
        stopped = "the service was stopped while the body was being sent; nothing was changed"
        assert without_id(error["message"]) == stopped
        with pytest.raises(ConnectionRefusedError):
            service.connect()
    status, headers, post = read_answer(complete)
    assert (status, headers["Connection"], post["id"]) == (201, "close", "1")
    assert service.process.wait(30) == 0
    assert time.monotonic() < begun + 5
    assert leftovers(service) == set()
    assert "Traceback" not in service.log
    for sock in (idle, half_header, half_body, complete):
        sock.close()


@pytest.mark.sqlite
def test_a_write_that_cannot_begin_does_not_delay_the_shutdown(service):
    statuses = []
    post = ("POST", "/v1/posts", {"title": "A", "content": "B"})
    writer = threading.Thread(target=lambda: statuses.append(service.request(*post)[0]))
    with busy(service.database):
        writer.start()
        assert service.request("GET", "/v1/posts")[0] == 200
        begun = time.monotonic()
        assert service.stop() == 0
        assert time.monotonic() < begun + 5
        writer.join()
    assert statuses == [503]


def test_ctrl_c_in_a_terminal_stops_master_and_worker(service):
    worker = service.worker
    service.process.send_signal(signal.SIGINT)
    with suppress(ProcessLookupError):  # It may have ended already.
        os.kill(worker, signal.SIGINT)
    assert (service.process.wait(30), leftovers(service)) == (0, set())


def reset_when_closed(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_clients_that_disconnect_are_logged_once_and_do_not_disturb_the_shutdown(service):
    targets = "/v1/posts?closed", "/v1/posts?reset"
    for target in targets:
        with service.connect() as sock:
            if target.endswith("reset"):
                reset_when_closed(sock)
            sock.sendall(service.creation(BODY, target=target))
    eventually(lambda: all(target in service.log for target in targets))
    sockets = [service.connect() for _ in range(100)]
    for sock in sockets:
        reset_when_closed(sock)
    assert service.request("GET", "/v1/posts")[0] == 200
    service.process.send_signal(signal.SIGTERM)
    for sock in sockets:
        sock.close()
    assert service.process.wait(30) == 0
    assert [service.log.count(target) for target in targets] == [1, 1]
    assert "Traceback" not in service.log


def test_the_unit_uses_the_paths_from_the_documentation():
    unit = (CHECKOUT / "deploy/blogapi.service").read_text()
    paths = re.findall(r"/(?:opt|var/lib)/blogapi[\w./]*", unit)
    assert {*paths} == {"/opt/blogapi", "/opt/blogapi/.venv/bin/gunicorn"}
    setting = "echo 'BLOGAPI_DATABASE=/var/lib/blogapi/blog.db' > /etc/blogapi.env\n"
    for said in ("/opt/blogapi/.venv/bin/blogapi'", setting, "system blogapi"):
        assert said in DEPLOYING
    assert "EnvironmentFile=/etc/blogapi.env\n" in unit
    assert "User=blogapi\n" in unit


@pytest.mark.slow
def test_systemd_accepts_the_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not there")
    unit = (CHECKOUT / "deploy/blogapi.service").read_text()
    unit = unit.replace("/opt/blogapi", str(CHECKOUT)).replace("User=blogapi", "User=root")
    (tmp_path / "blogapi.service").write_text(unit)
    command = ["systemd-analyze", "verify", "--man=no", tmp_path / "blogapi.service"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
