"""Choose the engine for a database."""

import importlib
from pathlib import Path

from blogapi.storage.engine import BLOCKING, Engine, Loop
from blogapi.storage.sqlite import Sqlite


def engine_for(database: Path | str, connections: int = 1, loop: Loop = BLOCKING) -> Engine:
    """Return the engine for a SQLite file or the URL of a PostgreSQL database. Raises ValueError."""
    if isinstance(database, Path):
        return Sqlite(database, loop=loop)
    try:  # imported only here, because SQLite does not need psycopg
        postgresql = importlib.import_module("blogapi.postgresql.engine")
    except ImportError as error:
        needed = "for PostgreSQL, run make postgresql, or install blogapi[postgresql]"
        raise ValueError(f"BLOGAPI_DATABASE: {error}; {needed}") from error
    return postgresql.Postgresql(database, connections, loop=loop)
