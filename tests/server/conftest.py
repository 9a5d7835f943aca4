"""Fixtures for services that share a PostgreSQL database, and for many connections to a service."""

import resource
from contextlib import ExitStack, contextmanager

import pytest

from tests.service import Server, eventually


@contextmanager
def together(url, folder):
    """Start services on one database, and stop them at the end."""
    with ExitStack() as stack:
        services = []

        def start(**settings):
            settings = {"WEB_CONCURRENCY": 2, "BLOGAPI_WEBHOOK_PRIVATE": "true"} | settings
            key = services[0].key if services else None
            service = Server(url, log_file=folder / f"{len(services)}.log", key=key, **settings)
            services.append(stack.enter_context(service))
            eventually(lambda: len(service.workers) == int(settings["WEB_CONCURRENCY"]))
            return service

        yield start


@pytest.fixture
def serve_together(url, tmp_path):
    with together(url, tmp_path) as start:
        yield start


@pytest.fixture
def opened():
    """An ExitStack, which closes what a test opens."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def many_files():
    """Let this process and those it starts open as many files as possible."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4096:
        pytest.skip("this machine does not allow a process 4,096 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
