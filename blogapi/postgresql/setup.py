"""Set up, upgrade and copy PostgreSQL databases."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from blogapi.storage.errors import Unavailable
from blogapi.storage.setup import FOREIGN, STATEMENT_END, Contents, section

OWN_SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
# PostgreSQL's equivalents of keywords in schema.sql. COLLATE "C" sorts by bytes, as SQLite does.
TRANSLATED = {
    " AUTOINCREMENT": "",
    " STRICT, WITHOUT ROWID": "",
    " STRICT": "",
    "TEXT": 'text COLLATE "C"',
    "INTEGER": "bigint",
    "BLOB": "bytea",
}
FETCHED_ROWS = 20  # a copy holds this many rows in memory at a time; each can contain a post of 4 MB


class PostgresContents(Contents):
    """The contents of a PostgreSQL database, accessed over a connection with an open transaction."""

    # information_schema would hide tables that this user has no rights to, so the database could look empty.
    find_tables = (
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'v')"
    )
    find_unicode = "SELECT unicode FROM blogapi"
    store_version = "UPDATE blogapi SET version = {}"
    store_unicode = "UPDATE blogapi SET unicode = ?"

    def __init__(self, connection: Any):
        self.connection = connection
        self.execute = lambda statement, values=None: connection.execute(statement.replace("?", "%s"), values)

    def version(self) -> int:
        tables = self.tables()
        if tables and "blogapi" not in tables:
            raise Unavailable(FOREIGN)
        return self.execute("SELECT version FROM blogapi").fetchone()[0] if tables else 0

    @property
    def last_ids(self) -> dict[str, int]:
        return dict(self.execute("TABLE counter").fetchall())

    @last_ids.setter
    def last_ids(self, ids: dict[str, int]) -> None:
        for name, last in ids.items():
            self.execute("UPDATE counter SET last = ? WHERE name = ?", [last, name])

    def statements(self, text: str) -> list[str]:
        shared, own = section(text, "PostgreSQL")
        translated = re.sub("|".join(TRANSLATED), lambda match: TRANSLATED[match[0]], shared)
        return STATEMENT_END.split((translated + own).strip())

    def schema(self) -> list[str]:
        return [*super().schema(), OWN_SCHEMA]

    def clear_index(self) -> None:
        self.execute("TRUNCATE search")

    def rows(self, query: str) -> Iterator[tuple]:
        with self.connection.cursor("rows") as cursor:
            cursor.itersize = FETCHED_ROWS
            yield from cursor.execute(query)

    def add(self, table: str, columns: list[str], rows: Iterable[tuple]) -> None:
        statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with self.connection.cursor() as cursor, cursor.copy(statement) as target:
            for row in rows:
                target.write_row(row)
