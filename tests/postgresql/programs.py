"""A PostgreSQL server for the tests, in a temporary folder, reachable only from this machine."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import psycopg
import pytest

from blogapi.postgresql.engine import Postgresql
from tests.service import free_port

UNPRIVILEGED = "nobody"  # PostgreSQL refuses to run as root


def programs():
    """Return the folder with the newest PostgreSQL programs; None if there are none."""
    if program := shutil.which("postgres"):
        return Path(program).resolve().parent
    folders = Path("/usr/lib/postgresql").glob("*/bin/postgres")  # Debian
    return max(folders, key=lambda path: int(path.parts[-3]), default=Path("none/none")).parent


PROGRAMS = programs() if (programs() / "initdb").exists() else None


class PostgresqlServer:
    """A server with its folder. Commits are durable, as in production."""

    def __init__(self):
        if not PROGRAMS:
            pytest.skip("PostgreSQL's programs are not there")
        self.folder = Path(tempfile.mkdtemp(prefix="blogapi-postgresql-"))
        self.data = self.folder / "data"
        self.port = free_port()
        self.user = UNPRIVILEGED if os.geteuid() == 0 else None
        self.process = None
        if self.user:
            shutil.chown(self.folder, self.user)

    def __enter__(self):
        options = ["--username=blogapi", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
        self.run("initdb", "-D", self.data, *options)
        self.start()
        return self

    def __exit__(self, *exc_info):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder)

    def run(self, program, *arguments):
        """Run one of PostgreSQL's programs."""
        subprocess.run([PROGRAMS / program, *arguments], user=self.user, check=True, capture_output=True, cwd="/")

    def start(self):
        """Start the server, and wait until it answers."""
        command = [PROGRAMS / "postgres", "-D", self.data, "-k", self.folder, "-p", str(self.port)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "-c", "listen_addresses=127.0.0.1"], user=self.user, stdout=log, stderr=log, cwd="/"
            )
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def stop(self, number=signal.SIGINT):
        """Stop the server: SIGINT ends all connections, SIGQUIT crashes it."""
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)

    @contextmanager
    def standby(self):
        """Run a standby of this server, whose commits wait for it from now on."""
        other = PostgresqlServer()
        copy = ["-D", other.data, "-d", self.url("postgres"), "--write-recovery-conf", "--checkpoint=fast"]
        other.run("pg_basebackup", *copy)
        other.start()
        self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.execute("SELECT pg_reload_conf()")
        try:
            yield other
        finally:
            other.stop(signal.SIGQUIT)
            shutil.rmtree(other.folder)

    def url(self, database):
        return f"postgresql://blogapi@127.0.0.1:{self.port}/{database}"

    def execute(self, statement):
        """Run a statement about databases."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    @cached_property
    def empty(self):
        """The name of a database with our tables, from which others are created in half the time."""
        self.execute("CREATE DATABASE empty")
        engine = Postgresql(self.url("empty"), 1)
        engine.open()
        engine.close()
        return "empty"

    def create(self, database):
        """Create a database with our tables; return its URL."""
        self.execute(f'CREATE DATABASE "{database}" TEMPLATE {self.empty}')
        return self.url(database)


def clear(url):
    """Delete everything in one of our databases."""
    with psycopg.connect(url, autocommit=True) as connection:
        query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        tables = {name for (name,) in connection.execute(query)} - {"blogapi", "counter"}
        connection.execute("; ".join([f"DELETE FROM {table}" for table in tables] + ["UPDATE counter SET last = 0"]))
