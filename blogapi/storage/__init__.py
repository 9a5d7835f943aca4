"""Storage: the database, its tables, and the operations on them, without HTTP."""

import importlib
from pathlib import Path
from typing import Any

from blogapi.loop import PLAIN, Loop


def engine_for(database: Path | str, connections: int = 1, loop: Loop = PLAIN) -> Any:
    """Return the engine of a database: a file of SQLite, or the URL of a database of PostgreSQL.

    Raises ValueError for anything else.
    """
    if isinstance(database, Path):
        return importlib.import_module("blogapi.storage.sqlite").Sqlite(database, loop=loop)
    try:  # Only the engine in use is imported: SQLite needs no psycopg.
        postgresql = importlib.import_module("blogapi.storage.postgresql")
    except ImportError as error:
        raise ValueError(
            f"BLOGAPI_DATABASE: {error}; for PostgreSQL, make postgresql, or install blogapi[postgresql]"
        ) from error
    return postgresql.Postgresql(database, connections, loop=loop)
