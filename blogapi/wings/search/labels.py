"""The labels of tags: the numbers that stand for tags in the search index.

A site-wide tag change writes a label, and no post's words.
"""

from typing import NamedTuple

from blogapi.paging import ListQuery
from blogapi.storage.engine import Compiled, Reader, Transaction
from blogapi.storage.errors import Rejected
from blogapi.text import fold
from blogapi.wings.search import words

MAX_LABELS = 5000  # a search looks for at most this many: each is one more list to merge


def add(tx: Transaction, tags: list[str]) -> None:
    """Give a label to each tag that has none."""
    tx.defer(ADD, tags=words.folded(*tags))


def of_tags(tx: Transaction, tags: list[str]) -> str:
    """Return the labels of tags, on SQLite, as a JSON array; add missing ones."""
    if not tags:
        return "[]"
    labels, is_complete = tx.one(OF_TAGS, tags=words.folded(*tags))
    if not is_complete:
        add(tx, tags)
        labels, _ = tx.one(OF_TAGS, tags=words.folded(*tags))
    return labels


def rename(tx: Transaction, old: str, name: str) -> None:
    """Give the labels of a (folded) tag to another name; "" stands for none."""
    tx.execute(RENAME, old=old, tag=fold(name))


class MatchingTags(NamedTuple):
    """The labels of the tags that contain each phrase of `q`, and of the tag given as `tag`."""

    phrases: list[list[int]]
    tag: list[int]


def look_up(reader: Reader, query: ListQuery) -> MatchingTags:
    """Look up the tags that a search may find. Raises Rejected if there are too many."""
    texts = [spaced(*phrase) for phrase in words.of_search(query.q)]
    matching = MatchingTags([[] for _ in texts], [])
    pairs, tag, count = [*zip(texts, matching.phrases, strict=True)], fold(query.tag or ""), 0
    for label, name in reader.rows(ALL):
        if name == tag:
            matching.tag.append(label)
        tag_words = words.of_tag(name)
        for text, labels in pairs:
            if text in tag_words:
                labels.append(label)
                count += 1
        if count > MAX_LABELS:
            raise Rejected("q", f"more than {MAX_LABELS} tags have these words; give longer words")
    return matching


def spaced(text: str, is_prefix: bool) -> str:
    """Return the text that words with spaces around them contain if a search for a phrase finds them."""
    return f" {text}" if is_prefix else f" {text} "


ADD = Compiled(
    sqlite="""
    INSERT INTO search_label (tag)
    SELECT value FROM json_each(:tags) WHERE NOT EXISTS (SELECT 1 FROM search_label WHERE tag = value)
    """,
    postgresql="""
    INSERT INTO search_label (id, tag) SELECT (SELECT coalesce(max(id), 0) FROM search_label) + number, value
    FROM jsonb_array_elements_text(:tags::jsonb) WITH ORDINALITY AS tag (value, number)
    WHERE NOT EXISTS (SELECT 1 FROM search_label WHERE search_label.tag = value)
    """,
)
LABEL = "(SELECT min(search_label.id) FROM search_label WHERE search_label.tag = value)"
OF_TAGS = Compiled(f"""
    SELECT '[' || group_concat('"{words.LABEL}' || label || '"') || ']', count(*) = count(label)
    FROM (SELECT {LABEL} AS label FROM json_each(:tags))
""")
ALL = Compiled("SELECT id, tag FROM search_label WHERE tag <> ''")
RENAME = Compiled("UPDATE search_label SET tag = :tag WHERE tag = :old")
