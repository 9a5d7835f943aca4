"""The fields of a post, and their bounds."""

import re

STATUSES = ("published", "draft", "scheduled", "archived")
MAX_TITLE, MAX_EXCERPT, MAX_CONTENT = 255, 1000, 1_000_000  # characters
MAX_SLUG, MAX_URL, MAX_TAG = 100, 2048, 64
MAX_TAGS = 50
LISTED = ("id", "title", "status")  # the fields in every list
TIMES = ("published_at", "created_at", "updated_at")
# All fields, as they are written. `params` is last: names in it are never taken for fields (see documents.py).
FIELDS = (*LISTED, "slug", "content", "excerpt", "tags", "cover_image", *TIMES, "params")
# The fields of every post
REQUIRED = frozenset(FIELDS) - {"excerpt", "cover_image", "published_at", "params"}
ID = "[1-9][0-9]{0,18}"
SLUG = "[a-z0-9]+(-[a-z0-9]+)*"


def is_slug(text: str) -> bool:
    """Return whether a text can be the slug of a post."""
    return len(text) <= MAX_SLUG and re.fullmatch(SLUG, text) is not None
