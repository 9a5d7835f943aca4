"""Copy a whole database, even during writes: back it up, or move it between SQLite and PostgreSQL."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from blogapi.storage.engine import Engine
from blogapi.storage.errors import Unavailable
from blogapi.storage.setup import EMPTY, SCHEMA, TABLE
from blogapi.storage.sqlite import Sqlite
from blogapi.wings.transfer.files import fill_file, snapshot_file, write_backup

# Tables that a database fills by itself, from the others and the highest ids
FILLED = ("deleted_post", "image_total", "search_made", "search_pending", "search_retagged", "upload")


def backup(engine: Engine, path: Path) -> None:
    """Write a consistent copy as a SQLite file. Raises Unavailable, OSError."""
    if isinstance(engine, Sqlite):
        write_backup(engine.path, path)
    else:
        copy(engine, Sqlite(path))


def copy(
    source: Engine, target: Engine, progress: Callable[[Iterable[tuple], int], Iterator[tuple]] | None = None
) -> None:
    """Copy one consistent state of a database to an empty one; all of it or nothing.

    `progress(rows, count)` must yield the rows. Raises Unavailable, and OSError for files.
    """
    with snapshot(source) as contents, filling(target) as filled:
        found = {table for (table,) in contents.rows(contents.TABLES)}  # An older version has fewer.
        if "post" not in found:
            raise Unavailable(f"cannot copy the database {source.name}: {EMPTY}")
        for table in [table for table in tables() if table in found]:
            columns = [name for name, *_ in contents.execute(f"SELECT * FROM {table} LIMIT 0").description]
            rows = contents.rows(f"SELECT {', '.join(columns)} FROM {table}")
            if progress:
                ((count,),) = contents.rows(f"SELECT count(*) FROM {table}")
                rows = progress(rows, count)
            filled.add(table, columns, rows)
        filled.last_ids = contents.last_ids


def tables() -> list[str]:
    """Return the tables that are copied; both engines have them."""
    return [table for table in TABLE.findall(SCHEMA.read_text()) if table not in FILLED]


def snapshot(engine: Any) -> Any:
    """Open a connection to one consistent state of the contents."""
    return snapshot_file(engine.path) if isinstance(engine, Sqlite) else engine.snapshot()


def filling(engine: Any) -> Any:
    """Set up an empty database, and open a connection that fills it."""
    return fill_file(engine.path) if isinstance(engine, Sqlite) else engine.filling()
