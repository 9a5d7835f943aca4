"""A post as another program left it, made ready to be checked and stored."""

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

SLUG = re.compile("(?=.{1,100}$)[a-z0-9]+(-[a-z0-9]+)*")
ABSOLUTE_URL = re.compile(r"https?://\S+", re.IGNORECASE)


class Item(NamedTuple):
    """A post that was read."""

    source: str
    """Where it stands, to be shown."""
    fields: dict[str, Any]
    """The fields of a post, `slug` among them, as JSON would have them. Not checked yet."""
    created_at: str | None
    """When it was made, RFC 3339; None: now."""
    dropped: tuple[str, ...] = ()
    """The names of what has no place in a post."""
    lines: Mapping[str, int] = {}
    """The lines of the fields, where they have any."""
    number: int = 0
    """The id that it had, by which posts of the same second are in order; 0 where it had none."""


class Refused(NamedTuple):
    """Something that could not be read."""

    source: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}" if self.line else f"{self.source}: {self.reason}"


def make_item(
    source: str,
    fields: dict[str, Any],
    *,
    created_at: str | None,
    dropped: tuple[str, ...] = (),
    lines: Mapping[str, int] = {},
    now: str,
) -> Item:
    """Make an item of what was read, with what follows from the times and `now`, all RFC 3339 in UTC.

    What is published at a time to come is scheduled, what was scheduled for a time that is past is published, and what
    is neither keeps no time to come.
    """
    status, published_at = fields.get("status"), fields.get("published_at", "")
    if status in ("published", "scheduled") and published_at:
        fields["status"] = "scheduled" if published_at > now else "published"
    elif published_at > now:
        del fields["published_at"]
    if "cover_image" in fields and not ABSOLUTE_URL.fullmatch(fields["cover_image"]):
        del fields["cover_image"]
        dropped = (*dropped, "cover_image")
    made = next((time for time in (created_at, published_at) if time and time <= now), None)
    return Item(source, fields, made, dropped, lines)


def make_slug(text: str, slug_of: Callable[[str], str]) -> str:
    """Return `text` where it is a slug, else the one that `slug_of` makes of it."""
    return text if SLUG.fullmatch(text) else slug_of(text)


def shown(text: str) -> str:
    """Return a text, a file's name say, as it can be shown on a terminal."""
    if text.isprintable():
        return text
    return "".join(
        "\ufffd" if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") else character for character in text
    )
