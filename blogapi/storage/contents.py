"""All rows of a database of PostgreSQL, read or written in a transaction."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

from peewee import Model

from blogapi.storage import documents
from blogapi.storage.connections import Connection
from blogapi.storage.copy import columns
from blogapi.storage.errors import Damaged
from blogapi.storage.search.index import changed_parts
from blogapi.storage.search.words import UNICODE

FETCHED_ROWS = 20  # at a time: a post can have 4 MB


def make_index(connection: Connection) -> None:
    """Make the words of all posts anew, in the transaction that is open; damaged posts are passed over."""
    connection.execute("DELETE FROM search")
    with connection.cursor("posts") as posts:
        posts.itersize = FETCHED_ROWS
        for post_id, document in posts.execute("SELECT id, document FROM post"):
            with suppress(Damaged):
                post = documents.load(document)
                parts = changed_parts({}, post)
                text, labels = (f" {parts[name][1]} " for name in ("text", "labels"))
                published = post["status"] == "published"
                connection.execute("INSERT INTO search VALUES (%s, %s, %s, %s)", [post_id, text, labels, published])
    connection.execute("UPDATE blogapi SET unicode = %s", [UNICODE])


class PostgresqlContents:
    """A database that is read or filled in a transaction."""

    def __init__(self, connection: Connection):
        self._connection = connection

    def rows(self, model: type[Model]) -> Iterator[tuple]:
        """Give the rows of a table, some of which are fetched at a time."""
        with self._connection.cursor("rows") as cursor:
            cursor.itersize = FETCHED_ROWS
            yield from cursor.execute(f"SELECT {', '.join(columns(model))} FROM {model._meta.table_name}")

    def count(self, model: type[Model]) -> int:
        """Return how many rows a table has."""
        return self._connection.execute(f"SELECT count(*) FROM {model._meta.table_name}").fetchone()[0]

    def last_ids(self) -> dict[str, int]:
        """Return the greatest ids that there ever were."""
        return dict(self._connection.execute("SELECT name, last FROM counter"))

    def add(self, model: type[Model], rows: Iterable[tuple]) -> None:
        """Add rows to a table."""
        text = f"COPY {model._meta.table_name} ({', '.join(columns(model))}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(text) as target:
            for row in rows:
                target.write_row(row)

    def set_last_ids(self, last_ids: Mapping[str, int]) -> None:
        """Let the ids go on after these."""
        query = "UPDATE counter SET last = %s WHERE name = %s"
        self._connection.cursor().executemany(query, [(last, name) for name, last in last_ids.items()])
