"""The status and the date that a post gets from each way of writing it."""

PAST, FUTURE = "2026-01-01T00:00:00Z", "2099-01-01T00:00:00Z"
NO = "refused"
# Each status and date ("" if left out), and the results: over `/v1` and on the owner's page (a POST to `/v1`
# creates only drafts and published posts), from writing programs (Micropub), and in files (imports, pushes). The latter
# two schedule a published post with a future date. In files, a date alone publishes, and a future one without a meaning
# is dropped.
TABLE = {
    ("", ""): ("draft", "published now", "draft"),
    ("", PAST): ("draft past", "published past", "published past"),
    ("", FUTURE): (NO, "scheduled future", "scheduled future"),
    ("draft", ""): ("draft", "draft", "draft"),
    ("draft", PAST): ("draft past", "draft past", "draft past"),
    ("draft", FUTURE): (NO, "draft future", "draft"),
    ("published", ""): ("published now", "published now", "published now"),
    ("published", PAST): ("published past", "published past", "published past"),
    ("published", FUTURE): (NO, "scheduled future", "scheduled future"),
    ("scheduled", ""): (NO, NO, NO),
    ("scheduled", PAST): (NO, NO, "published past"),
    ("scheduled", FUTURE): ("scheduled future", "scheduled future", "scheduled future"),
    ("archived", ""): ("archived", "archived", "archived"),
    ("archived", PAST): ("archived past", "archived past", "archived past"),
    ("archived", FUTURE): (NO, NO, "archived"),
}
API, PROGRAMS, FILES = range(3)


def outcome(post):
    """The status of a post, and what its date is, as in the table."""
    date = post.get("published_at")
    words = {None: "", PAST: " past", FUTURE: " future"}
    return post["status"] + words.get(date, " now")


def given(status, date):
    return {name: value for name, value in (("status", status), ("published_at", date)) if value}
