"""Databases as other programs see them: changed and read with SQL, or through our own functions."""

import sqlite3
from contextlib import closing, contextmanager

from blogapi.engines import engine_for
from blogapi.storage.database import Database


@contextmanager
def opened(location, create=True):
    """Open a database as a command does. With `create`, this sets up or upgrades the database."""
    with closing(engine_for(location)) as engine:
        engine.open(create)
        yield Database(engine)


def execute(path, statement, *values):
    """Run a statement on a database file; return the rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


@contextmanager
def busy(path):
    """Let another program hold the lock of a database file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
