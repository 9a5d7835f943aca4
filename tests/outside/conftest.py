"""A service started as README says, and a shell next to it."""

import os
import re
import signal
import subprocess

import pytest

from tests.pages import Page
from tests.service import CHECKOUT, free_port

MAKE_RUN = Page("README.md").take("blogapi")[0]


@pytest.fixture
def running(tmp_path):
    """`make run`, as in the README; yields its output and the environment for other commands."""
    settings = {"BLOGAPI_DATABASE": str(tmp_path / "blog.db"), "BLOGAPI_WEBHOOK_PRIVATE": "true"}
    environ = os.environ | settings | {"PORT": str(free_port())}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(MAKE_RUN.split(), cwd=CHECKOUT, env=environ, start_new_session=True, **pipes)
    output = ""
    while "Booting worker" not in output:
        line = process.stdout.readline()
        assert line, output
        output += line
    yield output, environ
    os.killpg(process.pid, signal.SIGTERM)
    process.communicate(timeout=60)


@pytest.fixture
def key(running):
    """The first key, which `make run` printed."""
    return re.search(r"blog_[A-Za-z0-9_-]{43}", running[0])[0]


@pytest.fixture
def sh(running, key):
    """Run a block in a shell next to the service, with its first key or another one; return its output."""
    return lambda block, key=key, **variables: shell(block, running[1] | variables, key)


def shell(block, environ, key):
    """Run a block in a shell; return its output."""
    script = block.replace("127.0.0.1:8000", f"127.0.0.1:{environ['PORT']}").replace("blog_…", key)
    script = script.replace("curl ", "curl --silent --show-error --retry-connrefused --retry 9 ")
    command = ["bash", "-c", f"set -eu\nKEY={key}\n{script}"]
    ended = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
