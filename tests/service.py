"""The real server, as the tests run it: gunicorn on a socket of the loopback interface."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Service:
    """A gunicorn with a database; its log is kept in a file beside that."""

    def __init__(self, database, host="127.0.0.1", **settings):
        self.database = database
        self.host = host
        self.port = free_port()
        self.log_file = database.with_suffix(".log")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("BLOGAPI_", "GUNICORN"))}
        self.environ = variables | {
            "HOST": host,
            "PORT": str(self.port),
            "BLOGAPI_DATABASE": str(database),
            "BLOGAPI_RATE_LIMIT": "1000000",
            **{name: str(value) for name, value in settings.items()},
        }
        self.process = None
        self.key = None

    def __enter__(self):
        self.start()
        self.key = self.blogapi("keys", "create", "tests").stdout.strip()
        return self

    def __exit__(self, *exc_info):
        self.stop()

    def blogapi(self, *arguments):
        """Run the command line beside the server."""
        return subprocess.run(
            [BIN / "blogapi", *arguments], env=self.environ, capture_output=True, text=True, timeout=30
        )

    def start(self):
        """Start the server and wait until it answers."""
        with self.log_file.open("a") as log:
            self.process = subprocess.Popen([BIN / "gunicorn"], cwd=CHECKOUT, env=self.environ, stderr=log)
        deadline = time.monotonic() + 10
        while not self.answers():
            assert self.process.poll() is None, self.log
            assert time.monotonic() < deadline, self.log
            time.sleep(0.02)

    def answers(self):
        try:
            return self.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def stop(self, number=signal.SIGTERM):
        """Stop the server by a signal to its master; return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(10)

    @property
    def worker(self):
        """The process id of the worker."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return int(children.read_text().split()[0])

    @property
    def log(self):
        return self.log_file.read_text()

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=20)

    def request(self, method, path, body=None, **headers):
        """Send a request on a connection of its own; return status, headers and the parsed or empty body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
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

    def raw(self, data):
        """Send bytes as they are; return status, headers and parsed body of the answer, until the server closes."""
        with self.connect() as sock:
            sock.sendall(data)
            return read_answer(sock)


def read_answer(sock):
    """Read one answer; return status, headers and parsed body."""
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    content = answer.read()
    return answer.status, answer.headers, json.loads(content) if content else None
