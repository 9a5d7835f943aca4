"""Setting up and upgrading PostgreSQL databases."""

import re
from pathlib import Path
from typing import Any

from blogapi.storage.errors import Unavailable
from blogapi.storage.setup import (
    EMPTY,
    INDEX_OUTDATED,
    OLDER,
    REBUILD,
    SCHEMA,
    STATEMENT_END,
    UNICODE,
    check_tables,
    check_version,
    section,
)
from blogapi.storage.upgrades import VERSION, Execute, upgrade_from

OWN_SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
# PostgreSQL's words for those of SQLite. COLLATE "C" sorts by bytes, as SQLite does.
TRANSLATED = {
    " AUTOINCREMENT": "",
    " STRICT, WITHOUT ROWID": "",
    " STRICT": "",
    "TEXT": 'text COLLATE "C"',
    "INTEGER": "bigint",
    "BLOB": "bytea",
}
# Not information_schema, which hides what this user has no rights to, as if the database were empty.
FIND_COLUMNS = """
SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v') AND attnum > 0 AND NOT attisdropped
"""


def statements(text: str) -> list[str]:
    """Return PostgreSQL's statements from a SQL file: those for both engines, translated, then its own."""
    shared, own = section(text, "PostgreSQL")
    translated = re.sub("|".join(TRANSLATED), lambda match: TRANSLATED[match[0]], shared)
    return STATEMENT_END.split((translated + own).strip())


def schema() -> list[str]:
    """Return the statements that set up an empty database."""
    return [*statements(SCHEMA), OWN_SCHEMA]


def set_up(connection: Any, create: bool, upgrade: bool = False) -> bool:
    """Set up or upgrade the database in the open transaction, as `storage.setup.set_up` does."""
    columns = set(connection.execute(FIND_COLUMNS))
    if columns and ("blogapi", "version") not in columns:
        raise Unavailable("it belongs to another program")
    if not columns:
        if not create:
            raise Unavailable(EMPTY)
        for statement in schema():
            connection.execute(statement)
        connection.execute("UPDATE blogapi SET version = %s", [VERSION])
    (version,) = connection.execute("SELECT version FROM blogapi").fetchone()
    check_version(version, is_released=not columns or ("post_tag", "name") in columns)
    if version < VERSION:
        if not (create or upgrade):
            raise Unavailable(OLDER)
        upgrade_from(version, executor(connection), statements)
        connection.execute("UPDATE blogapi SET version = %s", [VERSION])
    check_tables(schema(), {table for table, _ in connection.execute(FIND_COLUMNS)}, version)
    (unicode,) = connection.execute("SELECT unicode FROM blogapi").fetchone()
    if unicode != UNICODE:
        if not (create or upgrade):
            raise Unavailable(INDEX_OUTDATED)
        connection.execute("TRUNCATE search, search_rebuild")
        connection.execute(REBUILD)
        connection.execute("UPDATE blogapi SET unicode = %s", [UNICODE])
    return not columns


def executor(connection: Any) -> Execute:
    """Return a function that runs a statement, in which a "?" stands for each value."""
    return lambda statement, values=None: connection.execute(statement.replace("?", "%s"), values)
