"""The labels of tags: the numbers that stand for tags in the search index.

A site-wide tag change writes a label, and no post's words.
"""

from collections import defaultdict
from typing import NamedTuple

from blogapi.documents import dump
from blogapi.paging import ListQuery
from blogapi.storage.engine import Compiled, Reader, Transaction
from blogapi.storage.errors import Rejected
from blogapi.text import fold
from blogapi.wings.search import words

MAX_LABELS = 5000  # a search looks for at most this many: each is one more list to merge
OF_TAG, REBUILD_BELOW = -1, -2  # stand in for the number of a phrase


def add(tx: Transaction, tags: list[str]) -> None:
    """Give a label to each tag that has none."""
    tx.defer(ADD, tags=f"[{','.join(map(words.tag_as_json, tags))}]")


def of_tags(tx: Transaction, tags: list[str]) -> str:
    """Return the labels of tags, on SQLite, as a JSON array; add missing ones."""
    if not tags:
        return "[]"
    found, is_complete = tx.one(OF_TAGS, tags=words.folded(*tags))
    if not is_complete:
        add(tx, tags)
        found, _ = tx.one(OF_TAGS, tags=words.folded(*tags))
    return found


def rename(tx: Transaction, old: str, name: str) -> None:
    """Give the labels of a (folded) tag to another name; "" stands for none."""
    tx.execute(RENAME, old=old, tag=fold(name), words=words.of_tag(name) if name else "")


class MatchingTags(NamedTuple):
    """The labels of the tags that contain each phrase of `q`, and of the tag given as `tag`."""

    labels: list[set[int]]
    of_tag: set[int]
    rebuild_below: int = 0  # the index may lack posts with lower ids


def last_label(reader: Reader) -> int:
    """Return the greatest label, which is about the number of tags."""
    return reader.one(LAST)[0]


def look_up(reader: Reader, query: ListQuery) -> MatchingTags:
    """Look up the tags that a search may find. Raises Rejected if there are too many."""
    phrases = words.of_search(query.q)
    values = {"texts": dump([spaced(*phrase) for phrase in phrases]), "tag": query.tag and fold(query.tag)}
    rows = list(reader.rows(LOOK_UP, limit=MAX_LABELS + 1, **values))
    if len(rows) > MAX_LABELS:
        raise Rejected("q", f"more than {MAX_LABELS} tags have these words; give longer words")
    found: defaultdict[int, set[int]] = defaultdict(set)
    for number, label in rows:
        found[number].add(label)
    return MatchingTags([found[n] for n in range(len(phrases))], found[OF_TAG], max(found[REBUILD_BELOW], default=0))


def spaced(text: str, is_prefix: bool) -> str:
    """Return the text that words with spaces around them contain if a search for a phrase finds them."""
    return f" {text}" if is_prefix else f" {text} "


# A tag is a JSON array: the folded tag, and its words.
ADD = Compiled(
    sqlite="""
    INSERT INTO search_label (tag, words) SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]')
    FROM json_each(:tags) WHERE NOT EXISTS (SELECT 1 FROM search_label WHERE tag = json_extract(value, '$[0]'))
    """,
    postgresql="""
    INSERT INTO search_label (id, tag, words) SELECT (SELECT coalesce(max(id), 0) FROM search_label) + number,
    value ->> 0, value ->> 1 FROM jsonb_array_elements(:tags::jsonb) WITH ORDINALITY AS tag (value, number)
    WHERE NOT EXISTS (SELECT 1 FROM search_label WHERE search_label.tag = value ->> 0)
    """,
)
LABEL = "(SELECT min(search_label.id) FROM search_label WHERE search_label.tag = value)"
OF_TAGS = Compiled(f"""
    SELECT '[' || group_concat('"{words.LABEL}' || label || '"') || ']', count(*) = count(label)
    FROM (SELECT {LABEL} AS label FROM json_each(:tags))
""")
LAST = Compiled("SELECT coalesce(max(id), 0) FROM search_label")
RENAME = Compiled("UPDATE search_label SET tag = :tag, words = :words WHERE tag = :old")
_others = f"""
    SELECT {OF_TAG}, id FROM search_label WHERE tag = :tag UNION ALL
    SELECT {REBUILD_BELOW}, below FROM search_rebuild UNION ALL
"""
LOOK_UP = Compiled(
    sqlite=f"""{_others}
    SELECT key, search_label.id FROM json_each(:texts) CROSS JOIN search_label WHERE instr(words, value)
    LIMIT :limit
    """,
    postgresql=f"""{_others}
    SELECT number - 1, id FROM jsonb_array_elements_text(:texts::jsonb) WITH ORDINALITY AS sought (text, number)
    JOIN search_label ON strpos(words, text) > 0 LIMIT :limit
    """,
)
