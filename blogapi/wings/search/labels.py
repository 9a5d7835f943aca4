"""The labels of tags: the numbers that stand for tags among the words of posts.

A site-wide tag change writes labels only, and no post's words. Published posts have labels of their own, so a search
among them learns nothing about the tags of others.
"""

from collections import defaultdict
from typing import NamedTuple

from blogapi.documents import dump
from blogapi.paging import ListQuery
from blogapi.storage.engine import Compiled, Reader, Transaction
from blogapi.storage.errors import Rejected
from blogapi.wings.search import words

MAX_LABELS = 2000  # a search looks for at most this many: each is one more list to merge
PRUNED_LABELS = 1000  # at most this many are looked at in one transaction
# SQLite's tables, by whether their posts are published
INDEX_TABLES = {True: "search_published", False: "search_others"}
AFTER_ALL = "\U0010ffff"  # sorts after all other characters
REBUILD_ROW = -1  # stands in for the number of a phrase


# Writing


def add(tx: Transaction, is_published: bool, tags: list[str]) -> None:
    """Give a label to each tag that has none."""
    if tags:
        tx.defer(ADD, published=int(is_published), tags=f"[{','.join(map(words.tag_as_json, tags))}]")


def of_tags(tx: Transaction, is_published: bool, tags: list[str]) -> str:
    """Return the labels of tags, on SQLite; add missing ones."""
    values = {"published": int(is_published), "keys": words.keys_of(*tags)}
    found, is_complete = tx.one(OF_TAGS, **values)
    if not is_complete:
        add(tx, is_published, tags)
        found, _ = tx.one(OF_TAGS, **values)
    return found


def rename(tx: Transaction, old: str, name: str) -> None:
    """Give the labels of a (folded) tag to another name; "" stands for none."""
    tag = words.tag_as_json(name) if name else '["","",[""]]'  # The label stays, because the words of posts contain it.
    for label, is_published in list(tx.rows(WITH_KEY, key=words.key_of(old))):
        tx.execute(DELETE, label=label)
        tx.execute(INSERT, label=label, published=is_published, tag=tag)


def prune(tx: Transaction, after: int) -> int:
    """Delete the labels after the label `after` that no post has any more; return the last one looked at, or 0."""
    tx.run_last()
    found = list(tx.rows(UNUSED, after=after, limit=PRUNED_LABELS))
    for label, is_published, is_unused in found:
        if is_unused and not tx.row(INDEXED[bool(is_published)], word=f"{words.LABEL}{label}"):
            tx.execute(DELETE, label=label)
    return found[-1][0] if len(found) == PRUNED_LABELS else 0


# A tag is a JSON array: its key, its words in one text, and its key and each word once.
ADD = Compiled(
    sqlite="""
    INSERT INTO search_label (published, word, id, words) SELECT :published, word.value,
    (SELECT coalesce(max(id), 0) + 1 FROM search_label) + tag.key, json_extract(tag.value, '$[1]')
    FROM json_each(:tags) AS tag CROSS JOIN json_each(tag.value, '$[2]') AS word WHERE NOT EXISTS (
    SELECT 1 FROM search_label WHERE published = :published AND word = json_extract(tag.value, '$[0]'))
    """,
    postgresql="""
    INSERT INTO search_label (published, word, id, words) SELECT :published, word,
    (SELECT coalesce(max(id), 0) FROM search_label) + tag.number, tag.value ->> 1
    FROM jsonb_array_elements(:tags::jsonb) WITH ORDINALITY AS tag (value, number),
    jsonb_array_elements_text(tag.value -> 2) AS word WHERE NOT EXISTS (
    SELECT 1 FROM search_label WHERE published = :published AND word = tag.value ->> 0)
    """,
)
LABEL = "(SELECT min(search_label.id) FROM search_label WHERE published = :published AND word = value)"
OF_TAGS = Compiled(f"""
    SELECT coalesce(group_concat(' {words.LABEL}' || label, ''), ''), count(*) = count(label)
    FROM (SELECT {LABEL} AS label FROM json_each(:keys))
""")
WITH_KEY = Compiled("SELECT id, published FROM search_label WHERE published IN (0, 1) AND word = :key")
DELETE = Compiled("DELETE FROM search_label WHERE id = :label")
INSERT = Compiled(
    sqlite="""
    INSERT INTO search_label (published, word, id, words)
    SELECT :published, value, :label, json_extract(:tag, '$[1]') FROM json_each(:tag, '$[2]')
    """,
    postgresql="""
    INSERT INTO search_label (published, word, id, words)
    SELECT :published, word, :label, :tag::jsonb ->> 1 FROM jsonb_array_elements_text(:tag::jsonb -> 2) AS word
    """,
)
# Each label once, and whether no post carries its tag. The label of a tag that was deleted site-wide has the word ''.
_carried = "EXISTS (SELECT 1 FROM post_tag WHERE tag = substr(word, 2) AND status {})"
UNUSED = Compiled(f"""
    SELECT id, published, word = '' OR CASE published WHEN 1 THEN NOT {_carried.format("= 'published'")}
    ELSE NOT {_carried.format("IN ('draft', 'scheduled', 'archived')")} END
    FROM search_label WHERE id > :after AND (word = '' OR word LIKE '=%') ORDER BY id LIMIT :limit
""")
INDEXED = {
    is_published: Compiled(
        sqlite=f"SELECT 1 FROM {table} WHERE {table} MATCH '\"' || :word || '\"' LIMIT 1",
        postgresql=f"""
        SELECT 1 FROM search WHERE published = {is_published}
        AND array_to_tsvector(string_to_array(words, ' ')) @@ :word::text::tsquery LIMIT 1
        """,
    )
    for is_published, table in INDEX_TABLES.items()
}


# Searching


class MatchingTags(NamedTuple):
    """The labels of the tags that contain each phrase of `q`, and of the tag given as `tag`."""

    labels: list[set[int]]
    of_tag: set[int]
    rebuild_below: int = 0  # the index may lack posts with lower ids


def look_up(reader: Reader, query: ListQuery) -> MatchingTags:
    """Look up the tags that a search may find. Raises Rejected if there are too many."""
    published, *others = map(int, parts(query.status))
    values = {"first": published, "last": others[0] if others else published, "limit": MAX_LABELS + 2}
    rows = list(reader.rows(LOOK_UP, sought=dump(_texts(query)), **values))
    if sum(place >= 0 for place, _ in rows) > MAX_LABELS:
        raise Rejected("q", f"more than {MAX_LABELS} tags have these words; give longer words")
    found: defaultdict[int, set[int]] = defaultdict(set)
    for place, number in rows:
        found[place].add(number)
    labels = [found[place] for place in range(len(words.of_search(query.q)) + 1)]
    return MatchingTags(labels[:-1], labels[-1], max(found[REBUILD_ROW], default=0))


def _texts(query: ListQuery) -> list[tuple[str, str, str]]:
    """Return the range of the first word of each phrase, and the text of the phrase; then those for the tag."""
    texts = []
    for text, is_prefix in words.of_search(query.q):
        first, *others = text.split()
        texts.append((first, first + AFTER_ALL if is_prefix and not others else first, spaced(text, is_prefix)))
    key = words.key_of(query.tag or "")
    return [*texts, (key, key, "")]


def parts(status: str | None) -> list[bool]:
    """Return the parts of the index that contain posts with a status: the published (True), the others, or both."""
    return [True, False] if status is None else [status == "published"]


def spaced(text: str, is_prefix: bool) -> str:
    """Return the text that words with spaces around them contain if a search for a phrase finds them."""
    return f" {text}" if is_prefix else f" {text} "


_state = f"SELECT {REBUILD_ROW}, below FROM search_rebuild UNION ALL"
LOOK_UP = Compiled(
    sqlite=f"""{_state}
    SELECT DISTINCT sought.key, search_label.id FROM json_each(:sought) AS sought CROSS JOIN search_label
    WHERE published IN (:first, :last) AND instr(words, json_extract(sought.value, '$[2]'))
    AND word BETWEEN json_extract(sought.value, '$[0]') AND json_extract(sought.value, '$[1]') LIMIT :limit
    """,
    postgresql=f"""{_state}
    SELECT DISTINCT number - 1, id FROM jsonb_array_elements(:sought::jsonb) WITH ORDINALITY AS sought (value, number)
    JOIN search_label ON published IN (:first, :last) AND word BETWEEN value ->> 0 AND value ->> 1
    AND strpos(words, value ->> 2) > 0 LIMIT :limit
    """,
)
