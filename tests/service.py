"""The real server for tests: gunicorn on a socket of the loopback interface."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from statistics import median

import pytest

from blogapi.storage import keys
from tests.databases import opened

CHECKOUT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def add_key(database, name, scope="full"):
    """Store a new key; return it."""
    key = keys.new_key()
    database.write(keys.add, name, key, scope)
    return key


def unmeasured():
    """The environment without the variables that start coverage."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("COVERAGE", "COV_"))}


def without_rights(*command):
    """A command without root's rights to read and write all files, and to raise a priority."""
    if not os.geteuid():
        if not shutil.which("setpriv"):
            pytest.skip("root cannot give up its rights without setpriv")
        rights = "-dac_override,-dac_read_search,-sys_nice"
        return ["setpriv", "--bounding-set", rights, "--inh-caps", rights, *command]
    return command


def slowness():
    """How many times slower than usual this machine now is, at least 1. Time limits apply to a usual machine."""
    return slowness_at(time.monotonic() // 10)


@cache
def slowness_at(_time):
    texts = [{"title": "word " * 20, "tags": ["a", "b", "c"], "number": number} for number in range(300)]

    def seconds():
        begun = time.process_time()
        text = json.dumps(texts)
        sorted(re.findall(r"\w+", text))
        json.loads(text)
        return time.process_time() - begun

    return max(1.0, median(seconds() for _ in range(9)) / 0.006)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A gunicorn with a database. It logs to a file, which is next to the database file, if there is one.

    It gets a new key, unless `key` is the key of another server. `measured` lets coverage measure it, if coverage runs;
    that takes time and memory.
    """

    def __init__(self, database, command=(BIN / "gunicorn",), measured=False, log_file=None, key=None, **settings):
        self.command = command
        self.measured = measured
        self.database = database
        self.host = settings.get("HOST", "127.0.0.1")
        self.port = free_port()
        self.log_file = log_file or database.with_suffix(".log")
        self.environ = (os.environ if measured else unmeasured()) | {
            "HOST": self.host,
            "PORT": str(self.port),
            "BLOGAPI_DATABASE": str(database),
            "BLOGAPI_RATE_LIMIT": "1000000",
            **({"PYTHONPATH": str(CHECKOUT / "tests/sqlite_only")} if isinstance(database, Path) else {}),
            **{name: str(value) for name, value in settings.items()},
        }
        self.process = None
        self.key = key

    def __enter__(self):
        if self.key is None:
            self.key = self.write(add_key, "tests")
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *exc_info):
        if self.measured:
            self.stop()
        else:
            self.kill()

    def write(self, operation, *arguments):
        """Run a function on the database in this process, which takes less time than a command."""
        with opened(self.database) as database:
            return operation(database, *arguments)

    def blogapi(self, *arguments, timeout=60):
        """Run a command next to the server; kill it after `timeout` seconds."""
        command = [BIN / "blogapi", *arguments]
        return subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=timeout)

    def start(self):
        """Start the server and wait until it responds."""
        with self.log_file.open("a") as log:
            self.process = subprocess.Popen(self.command, cwd=CHECKOUT, env=self.environ, stderr=log)
        deadline = time.monotonic() + 180  # on a busy machine
        while not (self.workers and self.answers()):  # The worker of a killed master may answer for a while.
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def answers(self, path="/healthz"):
        try:
            return self.request("GET", path)[0] == 200
        except OSError:
            return False

    def stop(self, number=signal.SIGTERM):
        """Stop the server by sending a signal to its master. Return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(30)

    def kill(self):
        """Kill the server."""
        if self.process.poll() is None:
            processes = [self.process.pid, *map(int, self.workers)]
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            self.process.wait()

    @property
    def workers(self):
        """The process ids of the master's children."""
        return Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="utf-8").split()

    @property
    def worker(self):
        """The process id of the worker."""
        return int(self.workers[0])

    @property
    def worked(self):
        """The processor time of the worker's main thread, in seconds."""
        return int(Path(f"/proc/{self.worker}/schedstat").read_text(encoding="utf-8").split()[0]) / 1e9

    def wait(self, target):
        """GET a path; return how many seconds the response took, and for how many of them the worker was busy.

        The latter does not depend on how busy or slow the machine is.
        """
        begun, worked = time.monotonic(), self.worked
        assert self.request("GET", target)[0] == 200
        return time.monotonic() - begun, (self.worked - worked) / slowness()

    @property
    def open_files(self):
        """How many files the worker has open."""
        return len(list(Path(f"/proc/{self.worker}/fd").iterdir()))

    @property
    def connections(self):
        """How many connections the worker has open."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]]
        listening, closed = "0A", "0"  # a socket state; the inode of a socket that no process holds any more
        return sum(
            local.endswith(f":{self.port:04X}") and state != listening and inode != closed
            for _, local, _, state, *_, inode in (row[:10] for row in rows)
        )

    @property
    def memory(self):
        """The memory of master and workers in MB; shared pages count once, and files not at all."""
        processes = self.process.pid, *self.workers
        rollups = [Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8") for process in processes]
        return sum(int(re.search(r"^Pss_Anon: +(\d+) kB", rollup, re.MULTILINE)[1]) for rollup in rollups) / 1024

    @property
    def log(self):
        return self.log_file.read_text()

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=60)

    def request(self, method, path, body=None, **headers):
        """Send a request on a new connection; return status, headers and the parsed or empty body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            headers = {name.replace("_", "-"): value for name, value in headers.items()}
            if self.key:
                headers.setdefault("Authorization", f"Bearer {self.key}")
            if isinstance(body, dict):
                body = json.dumps(body)
                headers.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, answer.headers, json.loads(content) if content else None
        finally:
            connection.close()

    def raw(self, data, end=False):
        """Send raw bytes, then end the stream if `end`; return the status, headers and parsed body of the response."""
        with self.connect() as sock:
            sock.sendall(data)
            if end:
                sock.shutdown(socket.SHUT_WR)
            return read_answer(sock)

    def head(self, line, *fields):
        """Return the header of a request with a key, ready to send."""
        lines = [line, "Host: localhost", f"Authorization: Bearer {self.key}", *fields]
        return "\r\n".join([*lines, "", ""]).encode()

    def creation(self, body, length=None, target="/v1/posts"):
        """Return a request that creates a post from bytes, ready to send; it may state a different length."""
        fields = "Content-Type: application/json", f"Content-Length: {length or len(body)}"
        return self.head(f"POST {target} HTTP/1.1", *fields) + body


def eventually(condition, seconds=30):
    """Wait until `condition` holds; fail if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def read_answer(sock):
    """Read one response; return its status, its headers and its parsed body."""
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    content = answer.read()
    assert content.endswith(b"\n") or not content
    return answer.status, answer.headers, json.loads(content) if content else None


def in_batches(sock, requests, status):
    """Send small requests over one connection, a hundred at a time; all must be refused with this status."""
    for start in range(0, len(requests), 100):
        batch = requests[start : start + 100]
        sock.sendall(b"".join(batch))
        answers = b""
        while answers.count(b"HTTP/1.1 %d" % status) < len(batch) or not answers.endswith(b"}\n"):
            received = sock.recv(65536)
            assert received
            answers += received


def at_once(services, count, *request, **headers):
    """Send the same request many times at once, to all services in turn; return the responses.

    If a response says to retry because the database is busy, the request is sent again.
    """

    def ask(number):
        for _ in range(10):
            answer = services[number % len(services)].request(*request, **headers)
            if answer[0] != 503:
                break
            time.sleep(int(answer[1]["Retry-After"]))
        return answer

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(ask, range(count)))


def assert_writes_at_once_are_exact(services):
    """Assert that simultaneous writes with the same title, slug, Idempotency-Key or ETag have exact results.

    Return the ids of the posts with the same title, which are forty; one more is left.
    """
    new = {"title": "One title", "content": "x"}
    created = at_once(services, 40, "POST", "/v1/posts", new)
    assert {body["slug"] for _, _, body in created} == {"one-title", *(f"one-title-{n}" for n in range(2, 41))}
    answers = at_once(services, 40, "POST", "/v1/posts", new | {"slug": "mine"})
    assert sorted(status for status, _, _ in answers) == [201] + [400] * 39
    answers = at_once(services, 40, "POST", "/v1/posts", new, Idempotency_Key="once")
    assert {status for status, _, _ in answers} == {201}
    ((etag, path),) = {(headers["ETag"], headers["Location"]) for _, headers, _ in answers}
    answers = at_once(services, 20, "PATCH", path, {"title": "Changed"}, If_Match=etag)
    assert sorted(status for status, _, _ in answers) == [200] + [412] * 19
    answers = at_once(services, 20, "DELETE", "/v1/posts/by-slug/mine")
    assert sorted(status for status, _, _ in answers) == [204] + [404] * 19
    return {body["id"] for _, _, body in created}


def assert_100_of_150_are_served(services):
    """Send 150 requests with one key at once, to all services in turn, and check the responses."""
    resets = set()
    while len(resets) != 1:  # again if a minute ended in between
        key = services[0].blogapi("keys", "create", f"key{len(resets)} {time.time()}").stdout.strip()
        sockets = [services[number % len(services)].connect() for number in range(150)]
        for sock in sockets:
            sock.sendall(f"GET /v1/posts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
        answers = [read_answer(sock) for sock in sockets]
        for sock in sockets:
            sock.close()
        resets = {headers["X-RateLimit-Reset"] for _, headers, _ in answers}
    served = [int(headers["X-RateLimit-Remaining"]) for status, headers, _ in answers if status == 200]
    refused = [headers["X-RateLimit-Remaining"] for status, headers, _ in answers if status == 429]
    assert sorted(served) == list(range(100))
    assert refused == ["0"] * 50
