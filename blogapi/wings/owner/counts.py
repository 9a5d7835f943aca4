"""The post counts on the owner's page."""

from peewee import SQL, Select, fn

from blogapi.documents import STATUSES
from blogapi.storage.engine import Reader
from blogapi.storage.models import Post, Schedule

MAX_COUNTED = 100_000  # posts of a status: 5 ms


def counts(reader: Reader) -> dict[str, int]:
    """Return how many posts have each status, at most MAX_COUNTED: counting more would take too long."""
    found = {
        status: reader.one(count_query(Post.select(Post.id).where(Post.status == status)))[0] for status in STATUSES
    }
    is_due = Schedule.published_at <= reader.now  # still stored as scheduled
    due = min(reader.one(count_query(Schedule.select(Schedule.post_id).where(is_due)))[0], found["scheduled"])
    return found | {"published": found["published"] + due, "scheduled": found["scheduled"] - due}


def count_query(query: Select) -> Select:
    return Select([query.limit(MAX_COUNTED)], [fn.COUNT(SQL("*"))])
