"""Upgrade older databases. `N.sql`, `N.py` or both upgrade the tables to version N from that of the preceding file.

Not every version has a file: `5.sql` also upgrades versions 1 to 3, and `9.sql` also upgrades version 7.
All upgrades that a database needs run in order in one transaction. The files of a released upgrade never change,
because they describe the tables as they were at that time.
"""

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
VERSION = max(int(path.stem) for path in FOLDER.glob("[0-9]*.*"))  # the current version of the tables
Execute = Callable[..., Any]  # (statement with a "?" for each value, values) -> a cursor


def upgrade_from(version: int, execute: Execute, statements: Callable[[str], Iterable[str]]) -> None:
    """Upgrade a database of this version. `statements` extracts the statements to run from the text of a SQL file."""
    for number in range(version + 1, VERSION + 1):
        path = FOLDER / f"{number}.sql"
        for statement in statements(path.read_text(encoding="utf-8")) if path.exists() else ():
            execute(statement)
        if path.with_suffix(".py").exists():
            import_module(f"{__name__}.{number}").compute(execute)
