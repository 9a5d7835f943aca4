"""What tests of other programs share: their commands, packages that are installed once, and sites that are served."""

import fcntl
import functools
import http.server
import re
import shutil
import subprocess
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.service import CHECKOUT, unmeasured

NODE = (20, 19)  # what the linters and the sites ask for
OFFLINE = re.compile("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|No matching distribution")


def run(*command, cwd, **environ):
    """Run a command, which must succeed; return what it printed."""
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
    """One process at a time, tell whether something must be installed: it was not, or `source` has changed since."""
    with source.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield not marker.exists() or marker.stat().st_mtime < source.stat().st_mtime


def require_node():
    version = shutil.which("npm") and run("node", "--version", cwd=CHECKOUT)
    if not version or tuple(map(int, version[1:].split(".")[:2])) < NODE:
        pytest.skip("Node.js 20.19 or newer is not there")


class Pages(http.server.SimpleHTTPRequestHandler):
    """Serve a folder as hosts of sites do: with the page 404.html, if there is one, for what is not there."""

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
    """Serve the folder of a site; give its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Pages, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.02])
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
