"""Fixtures for the tests of the owner's page."""

import shutil
import subprocess

import pytest

from tests.owner.browser import Window
from tests.owner.pages import enter
from tests.service import Server


@pytest.fixture
def owner(app, database):
    """A client with a session."""
    return enter(app, database)


@pytest.fixture
def visitor(browser, tmp_path):
    """A window for somebody without a session."""
    with Server(tmp_path / "blog.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
        yield Window(browser, service)


@pytest.fixture
def window(visitor):
    """A window for the owner, with a session."""
    visitor.enter()
    return visitor


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The script of axe-core, which finds accessibility problems."""
    folder, npm = tmp_path_factory.mktemp("axe"), shutil.which("npm")
    options = ["--ignore-scripts", "--no-audit", "--fetch-retries=0"]  # Retries would take a minute per module.
    command = [npm, "install", "--prefix", folder, *options, "axe-core@4.14.1"]
    if not npm or subprocess.run(command, capture_output=True, timeout=120).returncode:
        pytest.skip("axe-core is not to be had from npm")
    return (folder / "node_modules/axe-core/axe.min.js").read_text()
