"""The post counts on the owner's page."""

from peewee import SQL, Select, fn

from blogapi.documents import STATUSES
from blogapi.storage.engine import Reader
from blogapi.storage.models import Post

MAX_COUNTED = 100_000  # posts of a status: 5 ms


def counts(reader: Reader) -> dict[str, int]:
    """Return how many posts have each status, at most MAX_COUNTED: counting more would take too long."""
    return {
        status: reader.one(count_query(Post.select(Post.id).where(Post.status == status)))[0] for status in STATUSES
    }


def count_query(query: Select) -> Select:
    return Select([query.limit(MAX_COUNTED)], [fn.COUNT(SQL("*"))])
