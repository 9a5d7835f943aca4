"""How SQLite runs the queries whose tables grow with the blog."""

from blogapi.documents import STATUSES
from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.posts.slugs import SELECT_HOLDER
from blogapi.search import storage as search
from blogapi.webhooks import sender
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.storage import Delivery
from tests.cases import cases

EACH = [None, *STATUSES]
DELIVERIES = webhooks.deliveries_query.where(Delivery.webhook_id == 1)
INDEXED = [posts.SELECT_ANY_DUE, posts.SELECT_NEXT_DUE, SELECT_HOLDER, DELIVERIES]
INDEXED += [
    query
    for queries in (posts.SELECT_DOCUMENT, posts.SELECT_PUBLISHED, posts.SELECT_TO_CHANGE)
    for query in queries.values()
]
INDEXED += [webhooks.DELETE_EVENT, sender.SELECT_FIRST_MESSAGES, sender.SELECT_TIMED_MESSAGES]
INDEXED += [
    lists.time_query("published_at", status, by_tag, of_second)
    for status in EACH
    for by_tag in (True, False)
    for of_second in (True, False)
]


@cases(
    ("query", "exceptions"),
    *((lists.created_query(status, by_tag), []) for status in EACH for by_tag in (0, 1)),
    *((search.rows_query("created_at", status, "", False), ["SCAN matches"]) for status in EACH),
    *((query, []) for query in INDEXED),
    (sender.SELECT_DUE_WEBHOOKS, ["SCAN t1"]),  # reads the few webhooks
)
def test_no_query_scans_or_sorts(plan, query, exceptions):
    steps = [step for step in plan(query) if "VIRTUAL TABLE" not in step]  # the index of the words
    assert [step for step in steps if "SCAN" in step or "TEMP" in step] == exceptions
