"""Quick tests start no process, because that takes a second, and most tests do not need one.

A test that starts one is slow, unless it is marked as the smoke test of a command. Fixtures that are shared by several
tests may start what these use.
"""

import sys
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

import pytest

STARTING = {"subprocess.Popen", "os.system", "os.fork", "os.forkpty", "os.posix_spawn"}  # audit events
START = BaseProcess.start  # raises no audit event unless it forks
STARTERS = {"serve", "url", "browser", "small_disk"}  # fixtures whose tests are slow


class Processes:
    may_start = True


def refuse(event, arguments):
    if event in STARTING and not Processes.may_start:
        raise RuntimeError("a quick test starts a process: use a shared fixture, or mark it as slow")


def start(process):
    refuse("os.fork", ())
    START(process)


sys.addaudithook(refuse)
BaseProcess.start = start


@contextmanager
def starting(is_allowed):
    before, Processes.may_start = Processes.may_start, is_allowed
    try:
        yield
    finally:
        Processes.may_start = before


def pytest_itemcollected(item):
    if STARTERS.intersection(item.fixturenames):
        item.add_marker("slow")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    markers = {marker.name for marker in item.iter_markers()}
    with starting(not markers.isdisjoint({"slow", "smoke"})):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef):
    with starting(Processes.may_start or fixturedef.scope != "function"):
        return (yield)
