"""Several services on one database of PostgreSQL."""

from contextlib import ExitStack

import psycopg
import pytest

from tests.service import Server, eventually


@pytest.fixture
def ask(url):
    """Ask the database something."""
    with psycopg.connect(url, autocommit=True) as connection:
        yield lambda query, *values: connection.execute(query, values).fetchall()


@pytest.fixture
def serve_together(url, tmp_path):
    """Start services on one database."""
    with ExitStack() as stack:
        services = []

        def start(**settings):
            settings = {"WEB_CONCURRENCY": 2, "BLOGAPI_WEBHOOK_PRIVATE": "true"} | settings
            key = services[0].key if services else None
            service = Server(url, log_file=tmp_path / f"{len(services)}.log", key=key, **settings)
            services.append(stack.enter_context(service))
            eventually(lambda: len(service.workers) == int(settings["WEB_CONCURRENCY"]))
            return service

        yield start
