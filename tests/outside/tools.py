"""Helpers for tests with other programs: running commands, installing packages once, and serving sites."""

import fcntl
import functools
import http.server
import os
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.service import CHECKOUT, unmeasured

NODE = (20, 19)  # required by the linters
NODE_OF_SITES = "22.23.3"  # They require 22.12 or newer.
OFFLINE = re.compile("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|No matching distribution")


def run(*command, cwd, **environ):
    """Run a command, which must succeed; return its output."""
    ended = subprocess.run(command, cwd=cwd, env=unmeasured() | environ, capture_output=True, text=True, timeout=300)
    output = ended.stdout + ended.stderr
    assert ended.returncode == 0, output
    return output


def install(*command, cwd):
    """Run a command that installs packages, unless their registry cannot be reached."""
    try:
        run(*command, cwd=cwd)
    except AssertionError as error:
        if OFFLINE.search(str(error)):
            pytest.skip("the registry of packages cannot be reached")
        raise


@contextmanager
def installing(marker, source):
    """Tell one process at a time whether to install something, because it is missing or `source` has changed."""
    with source.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield not marker.exists() or marker.stat().st_mtime < source.stat().st_mtime


def node_version():
    return tuple(map(int, run("node", "--version", cwd=CHECKOUT)[1:].split(".")[:2])) if shutil.which("npm") else ()


def require_node():
    if node_version() < NODE:
        pytest.skip("Node.js 20.19 or newer is not there")


def path_of_node():
    """Return a PATH with a Node.js that is new enough for the sites; if needed, install it once in .venv-node."""
    require_node()
    if node_version() >= (22, 12):
        return os.environ["PATH"]
    target = CHECKOUT / ".venv-node"
    target.mkdir(exist_ok=True)
    with installing(target / "node_modules/.package-lock.json", Path(__file__)) as needed:
        if needed:
            install("npm", "install", "--no-audit", "--no-fund", f"node@{NODE_OF_SITES}", cwd=target)
    return f"{target / 'node_modules/.bin'}:{os.environ['PATH']}"


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serve a folder as site hosts do, with the page 404.html, if there is one, for missing files."""

    def log_message(self, *args):
        pass

    def send_error(self, code, message=None, explain=None):
        page = Path(self.directory, "404.html")
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(page.read_bytes() if page.exists() else b"")


@contextmanager
def served(folder):
    """Serve the folder of a site; yield its URL."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Pages, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
