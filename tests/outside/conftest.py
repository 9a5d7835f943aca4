"""A service, and a shell next to it that runs the blocks of a page."""

import subprocess

import pytest

from tests.service import CHECKOUT, Server, add_key


@pytest.fixture
def service(tmp_path):
    """A service with a key that has the same name as the first key on the pages."""
    with Server(tmp_path / "blog.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
        service.key = service.write(add_key, "first")
        yield service


@pytest.fixture
def sh(service):
    """Run a block in a shell next to the service, with the service's key or another; return the output."""
    return lambda block, key=service.key, **variables: shell(block, service.environ | variables, key)


def shell(block, environ, key):
    """Run a block in a shell; return its output."""
    script = block.replace("127.0.0.1:8000", f"127.0.0.1:{environ['PORT']}").replace("blog_…", key)
    script = script.replace("curl ", "curl --silent --show-error --retry-connrefused --retry 9 ")
    command = ["bash", "-c", f"set -eu\nKEY={key}\n{script}"]
    ended = subprocess.run(command, cwd=CHECKOUT, env=environ, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
