"""Copies of a whole database, between files and PostgreSQL."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from blogapi.storage.models import BaseModel


def copy(source: Any, target: Any, progress: Callable[[Iterable[tuple], int], Iterator[tuple]] | None = None) -> None:
    """Copy the state of a database at one moment to an empty one; all of it or nothing.

    `progress(rows, count)` yields the rows. Raises Unavailable, and OSError for files.
    """
    with source.snapshot() as snapshot, target.filling() as filling:
        found = {table for (table,) in snapshot.rows(snapshot.TABLES)}  # A database of an older version has fewer.
        for model in [model for model in BaseModel.__subclasses__() if model._meta.table_name in found]:
            table, columns = model._meta.table_name, [field.column_name for field in model._meta.sorted_fields]
            rows = snapshot.rows(f"SELECT {', '.join(columns)} FROM {table}")
            if progress:
                ((count,),) = snapshot.rows(f"SELECT count(*) FROM {table}")
                rows = progress(rows, count)
            filling.add(table, columns, rows)
        filling.last_ids = snapshot.last_ids
