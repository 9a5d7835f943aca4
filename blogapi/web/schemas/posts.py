"""Schemas of the lists of posts. Those of a post are in blogapi.post."""

from marshmallow import ValidationError

from blogapi.post import FIELDS, STATUSES, PostSchema, Text, choice, length
from blogapi.storage.search.words import words
from blogapi.web.schemas.fields import MAX_PAGE_SIZE, Before, FoldedTag, Names, NoQuerySchema, PageSize

Q = (
    "Words to look for, 1 to 200 characters: posts that have all of them in title, content, excerpt or tags. Case and "
    'diacritics make no difference. `word*` finds words that begin so, `"several words"` these in sequence; nothing '
    "else has a meaning. In scripts that write no spaces between words each character is a word, and a run of them a "
    "sequence."
)


def has_words(text: str) -> None:
    """Validate that there is something to look for."""
    if not words(text):
        raise ValidationError("must have a letter or a digit")


class ListedPostSchema(PostSchema):
    """A post in a list: all of it, or only the fields that were asked for."""


class ListQuerySchema(NoQuerySchema):
    """The query of GET /posts."""

    limit = PageSize(
        MAX_PAGE_SIZE,
        load_default=100,
        metadata={"description": "The most posts to return: 100 if left out, and never more than 1,000."},
    )
    status = choice(*STATUSES, metadata={"description": "Only posts of this status."})
    tag = FoldedTag("Only posts that carry this tag; letter case does not matter.")
    before = Before(
        metadata={
            "description": "Only posts created before the one with this id; with `sort=published_at`, what `Link` gave."
        }
    )
    sort = choice(
        "created_at",
        "published_at",
        metadata={"description": "`published_at`: the posts that have one, latest first. Left out: newest first."},
    )
    fields = Names(FIELDS, f"Only these fields of each post, with commas between them, each once: {', '.join(FIELDS)}.")
    q = Text(length(1, 200), has_words, metadata={"description": Q})
