"""Setting up and upgrading PostgreSQL databases."""

from pathlib import Path
from typing import Any

from blogapi.storage.errors import Unavailable
from blogapi.storage.setup import (
    EMPTY,
    ENQUEUE_ALL,
    OLDER,
    OTHER_WORDS,
    UNICODE,
    VERSION,
    check_tables,
    check_version,
    derived,
    upgrade,
)

# Further statements for PostgreSQL, by version
SCOPES = "'full', 'read-only', 'published-only', 'drafts-only'"
ON_POSTGRESQL = {6: f"ALTER TABLE api_key DROP CONSTRAINT api_key_scope_check, ADD CHECK (scope IN ({SCOPES}))"}
SCHEMA = Path(__file__).resolve().parent / "schema.sql"


def set_up(connection: Any, create: bool) -> bool:
    """Set up or upgrade the database in the open transaction, as `storage.setup.set_up` does."""
    query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
    found = set(connection.execute(query))
    if found and ("blogapi", "version") not in found:
        raise Unavailable("it belongs to another program")
    schema = SCHEMA.read_text()
    if not found:
        if not create:
            raise Unavailable(EMPTY)
        connection.execute(schema)
    version, unicode = connection.execute("TABLE blogapi").fetchone()
    check_version(version, is_released=not found or ("post_tag", "name") in found)
    check_tables(schema, {table for table, _ in connection.execute(query)}, version)
    if version < VERSION:
        if not create:
            raise Unavailable(OLDER)
        others = [statement for number, statement in ON_POSTGRESQL.items() if number > version]
        for statement in (*upgrade(schema, version), *others):
            connection.execute(statement)
        connection.execute("UPDATE blogapi SET version = %s", [VERSION])
    if version < VERSION or unicode != UNICODE:
        if not create:
            raise Unavailable(OTHER_WORDS)
        connection.execute(ENQUEUE_ALL)
        connection.execute("UPDATE blogapi SET unicode = %s", [UNICODE])
    return not found


def derive(connection: Any) -> None:
    """Fill the tables that are derived from other tables, in the open transaction."""
    for statement in derived(SCHEMA.read_text()):
        connection.execute(statement)
    connection.execute(ENQUEUE_ALL)
