"""The search: finding posts by their words."""

from collections.abc import Hashable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from peewee import SQL, Select

from blogapi.documents import STATUSES, dump
from blogapi.paging import Cursor, ListQuery, Page, bounded, cursor_of, id_of, page_of
from blogapi.storage.database import Database
from blogapi.storage.engine import Compiled, Reader
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import MAX_ID
from blogapi.wings.search import words
from blogapi.wings.search.index import rebuild_position
from blogapi.wings.search.labels import MatchingTags, look_up, spaced

FIRST_READ = 200  # posts that are read in order before the index
QUICK_READ = 500  # a quick search for published posts looks at this many posts with the word, whatever their status
QUICK_LABELS = 20  # a quick search looks for at most this many tags
QUICK_TAGS = 2000  # and looks at no more than this many
REBUILD_SECONDS = 5  # a client should try again after this time
TITLE, TEXT = "title", "text"  # where all the words were found: the key of a Cursor in the order of relevance
UNION = " UNION ALL "
# Whether the index is complete, and has few labels, of which the last is about the number
IS_SMALL = Compiled(f"""
    SELECT NOT EXISTS (SELECT 1 FROM search_rebuild)
    AND (SELECT coalesce(max(id), 0) FROM search_label) <= {QUICK_TAGS}
""")


class Rebuilding(Unavailable):
    """Old posts are not indexed again yet, so the search would miss them."""

    reason = "the search index is being built again, and the search would miss old posts"


def find(database: Database, query: ListQuery, client: Hashable) -> Page[Any, int | Cursor[int]]:
    """Return a page as `page` does, in a thread unless the search is quick. Raises Rejected, Rebuilding."""
    if is_quick(query) and database.one(IS_SMALL)[0]:
        matching = look_up(database, query)
        if len(matching.phrases[0]) <= QUICK_LABELS:
            posts = page(database, query, matching)
            if posts.next is not None or query.status is None or not _has_more(database, query, matching):
                return posts
    return database.read_in_thread(client, page, query)


def is_quick(query: ListQuery) -> bool:
    """Return whether a search is cheap enough to run inline: for one word, in an order that the index has."""
    (text, is_prefix), *others = words.of_search(query.q)
    in_order = query.sort == "created_at" and query.tag is None and query.status in (None, "published")
    return in_order and " " not in text and not is_prefix and not others


def _has_more(reader: Reader, query: ListQuery, matching: MatchingTags) -> bool:
    """Return whether more than QUICK_READ posts have a word, so that a quick search may have missed some."""
    values = _sqlite_words(query, matching, "") | {"id": query.before_id}
    return reader.dialect == "sqlite" and reader.row(AFTER_QUICK_READ, **values) is not None


def page(reader: Reader, query: ListQuery, quick: MatchingTags | None = None) -> Page[Any, int | Cursor[int]]:
    """Return a page as `lists.page` does, of the posts with the words of `q`. Raises Rejected, Rebuilding.

    Sorted by relevance: first the posts whose title alone has all words, then the others, each newest first. With what
    `look_up` found, the search is quick, and looks at QUICK_READ posts only.
    """
    matching = quick or look_up(reader, query)
    below = 0 if quick else rebuild_position(reader)
    if query.sort == "created_at":
        rows = _rows(reader, query, matching, Cursor("", query.before_id), is_quick=bool(quick))
        return page_of(_indexed(rows, query, below) if below else rows, query, id_of)
    if below:
        raise Rebuilding("it is not complete", REBUILD_SECONDS)
    if query.sort == "relevance":
        rows = _by_relevance(reader, query, matching)
    else:
        rows = _rows(reader, query, matching, query.start)
    return page_of(rows, query, cursor_of)


def _indexed(rows: Iterable[tuple], query: ListQuery, below: int) -> Iterator[tuple]:
    """Yield the rows, newest first, down to the first post that may not be indexed.

    Raises Rebuilding if the page has room for more.
    """
    count = 0
    for row in rows:
        if id_of(row) < below:
            break
        count += 1
        yield row
    if count <= query.limit:
        raise Rebuilding("it is not complete", REBUILD_SECONDS)


def _by_relevance(reader: Reader, query: ListQuery, matching: MatchingTags) -> Iterator[tuple]:
    """Yield the rows of posts whose title has all words, then the others."""
    before = query.before if isinstance(query.before, Cursor) else Cursor(TITLE, MAX_ID)
    if before.key == TITLE:
        yield from _rows(reader, query, matching, before, TITLE)
        before = Cursor(TEXT, MAX_ID)
    yield from _rows(reader, query, matching, before, TEXT)


def _rows(
    reader: Reader,
    query: ListQuery,
    matching: MatchingTags,
    before: Cursor[int],
    part: str = "",
    is_quick: bool = False,
) -> Iterator[tuple]:
    """Return the rows of the matching posts before a cursor; by relevance, only those in one part of the order."""
    is_file = reader.dialect == "sqlite"
    values = _sqlite_words(query, matching, part) if is_file else _postgresql_words(query, matching, part)
    values |= {"key": before.key, "id": before.id, "after": query.published_after}
    has_labels = any(matching.phrases) and part != TITLE
    rows = rows_query(query.sort, query.status, part, query.tag is not None, has_labels, is_quick)
    return reader.rows(rows, limit=query.limit + 1, **values)


class Order(NamedTuple):
    """An order of posts, in SQL."""

    key: str  # the key of a Cursor in this order
    newest_first: str
    is_before: str  # whether a post is before the cursor
    is_by_time: bool


@cache
def rows_query(
    sort: str, status: str | None, part: str, by_tag: bool, has_labels: bool = False, is_quick: bool = False
) -> Compiled:
    """Return the query of a page, with the parameters limit, key, id, after, and those of the words."""
    if sort in ("published_at", "updated_at"):
        # PostgreSQL's index needs a range.
        is_before = f"({sort}, id) < (:key, :id) AND {sort} >= :after AND {sort} <= :key"
        order = Order(sort, f"{sort} DESC, id DESC", is_before, True)
    else:
        order = Order(f"'{part}'", "id DESC", "id < :id", False)
    rows = Select([SQL(f"({_postgresql_query(order, status, part, by_tag, has_labels)}) AS found")], [SQL("*")])
    return Compiled(sqlite=_sqlite_query(order, status, part, by_tag, is_quick), postgresql=bounded(rows, "key"))


def _lists(status: str | None) -> list[str]:
    """Return conditions for posts with a status, each covered by an index."""
    return [f"status = '{listed}'" for listed in ([status] if status else STATUSES)]


# In SQLite


def _sqlite_words(query: ListQuery, matching: MatchingTags, part: str) -> dict[str, Any]:
    """Return the parameters for the words of a search. They have no characters with a special meaning."""
    phrases = words.of_search(query.q)
    plain = [f'"{text}"{" *" if is_prefix else ""}' for text, is_prefix in phrases]
    in_title = f"title : ({' AND '.join(plain)})"
    match = " AND ".join(map(_either, plain, matching.phrases))
    match = {TITLE: in_title, TEXT: f"({match}) NOT ({in_title})"}.get(part, match)
    if query.tag is not None:
        match = f"({match}) AND {_either(_quoted(0), matching.tag)}"  # No tag has the label 0.
    labels = [f"{number}{words.LABEL}{label}" for number, own in enumerate(matching.phrases) for label in own]
    labels += [f"{words.LABEL}{label}" for label in matching.tag]
    texts = [spaced(*phrase) for phrase in phrases]
    return {"match": match, "texts": dump(texts), "labels": f" {' '.join(labels)} ", "read": QUICK_READ}


def _either(text: str, labels: list[int]) -> str:
    return f"({' OR '.join([text, *map(_quoted, labels)])})"


def _quoted(label: int) -> str:
    return f'"{words.LABEL}{label}"'


# Like MATCH, but for a single post: MATCH would read on until it finds another one.
HAS_LABEL = "EXISTS (SELECT 1 FROM json_each(labels) AS own WHERE instr(:labels, ' ' || {} || own.value || ' '))"
HAS_ALL = "NOT EXISTS (SELECT 1 FROM json_each(:texts) AS sought WHERE NOT instr({}, sought.value){})"
IN_TITLE = HAS_ALL.format("' ' || title || ' '", "")
IN_TEXT = HAS_ALL.format("' ' || title || ' ' || text || ' '", f" AND NOT {HAS_LABEL.format('sought.key')}")
FOUND = "SELECT rowid AS id FROM search WHERE search MATCH :match"
AFTER_QUICK_READ = Compiled(f"{FOUND} AND rowid < :id LIMIT 1 OFFSET :read")


def _sqlite_query(order: Order, status: str | None, part: str, by_tag: bool, is_quick: bool) -> str:
    """Return the query for the first posts that match. It finds their ids first: SQLite would sort whole documents.

    The word index is in the order of creation. When sorting by time, all matches are read only if too few of the first
    posts match.
    """
    lists, first, among_first, few = _lists(status), "", "", ""
    if order.is_by_time:
        first = _sqlite_first(order, part, by_tag, lists)
        among_first = f"SELECT id FROM among_first {UNION}"
        few = "(SELECT 1 WHERE (SELECT count(*) FROM among_first) < :limit) CROSS JOIN"
    matches = f"{FOUND} AND rowid < :id ORDER BY rowid DESC LIMIT :read" if is_quick and status else FOUND
    return f"""
    {first}
    SELECT id, CAST(document AS BLOB), {order.key} FROM post WHERE id IN ({among_first} SELECT id FROM (
        SELECT id FROM {few} ({matches}) CROSS JOIN post USING (id)  -- which reads the words first
        WHERE ({" OR ".join(lists)}) AND {order.is_before} ORDER BY {order.newest_first} LIMIT :limit
    )) ORDER BY {order.newest_first} LIMIT :limit
    """


def _sqlite_first(order: Order, part: str, by_tag: bool, lists: list[str]) -> str:
    """Return the tables of the first posts in the order, and of those among them that match."""
    has_all = {TITLE: IN_TITLE, TEXT: f"{IN_TEXT} AND NOT {IN_TITLE}"}.get(part, IN_TEXT)
    has_tag = f"AND {HAS_LABEL.format(repr(''))}" if by_tag else ""
    return f"""
    WITH first AS MATERIALIZED ({_first_posts(order, lists)}),
    among_first AS MATERIALIZED (
        SELECT id FROM first WHERE EXISTS (SELECT 1 FROM search WHERE rowid = id AND {has_all} {has_tag}) LIMIT :limit
    )
    """


# In PostgreSQL


def _postgresql_words(query: ListQuery, matching: MatchingTags, part: str) -> dict[str, Any]:
    """Return the parameters for the words of a search."""
    every: list[str] = []
    plain: list[str] = []
    labelled: list[dict[str, Any]] = []
    for (text, is_prefix), own in zip(words.of_search(query.q), matching.phrases, strict=True):
        labels = [] if part == TITLE else own
        lexemes = f"'{text}'{':*' if is_prefix else ''}".replace(" ", "' & '")
        every.append(" | ".join([f"({lexemes})", *(f"'{words.LABEL}{label}'" for label in labels)]))
        if labels:
            labelled.append({"text": spaced(text, is_prefix), "labels": labels})
        else:
            plain.append(spaced(text, is_prefix))
    return {
        "text": plain[0] if plain else "",
        "others": [f"%{text}%" for text in plain[1:]],
        "phrases": [f"%{text}%" for text in plain if " " in text.strip()],
        "labelled": dump(labelled),
        "texts": [f"%{spaced(*phrase)}%" for phrase in words.of_search(query.q)],
        "lexemes": " & ".join(f"({phrase})" for phrase in every),
        "tags": matching.tag,
        "tag_lexemes": " | ".join(f"'{words.LABEL}{label}'" for label in matching.tag or [0]),
    }


HAS_TEXTS = "strpos({0}, :text) > 0 AND {0} LIKE ALL (:others::text[])"  # strpos takes less time than LIKE.
HAS_LABELS = """ AND NOT EXISTS (
    SELECT 1 FROM jsonb_to_recordset(:labelled::jsonb) AS one (text text, labels bigint[])
    WHERE strpos(search.text, one.text) = 0 AND NOT search.labels && one.labels
)"""
LEXEMES = "array_to_tsvector(string_to_array({}, ' '))"  # the expression that is indexed


def _postgresql_query(order: Order, status: str | None, part: str, by_tag: bool, has_labels: bool) -> str:
    """Return the query for the first posts that match.

    The index returns all matches, unsorted: for a common word, half of all posts. So it is read only if too few of the
    first posts match.
    """
    lists = _lists(status)
    has_texts, has_lexemes = _conditions(part, by_tag, has_labels)
    return f"""
    WITH first AS ({_first_posts(order, lists)}),
    among_first AS (SELECT post_id FROM search WHERE post_id = ANY (ARRAY(SELECT id FROM first)) AND {has_texts})
    SELECT id, document, {order.key} AS key FROM post
    WHERE (({" OR ".join(lists)}) AND {order.is_before}) IS TRUE  -- which no index has: the ids find the posts
    AND id = ANY (ARRAY(
        SELECT post_id FROM among_first UNION ALL
        SELECT post_id FROM search WHERE {has_lexemes}
        AND (SELECT count(*) FROM among_first) < :limit AND (SELECT count(*) FROM first) = {FIRST_READ}
    )) ORDER BY {order.newest_first} LIMIT :limit
    """


def _first_posts(order: Order, lists: list[str]) -> str:
    """Return the query for the first posts in the order."""
    first = f"ORDER BY {order.newest_first} LIMIT {FIRST_READ}"
    posts = [
        f"SELECT * FROM (SELECT id, {order.key} FROM post WHERE {condition} AND {order.is_before} {first}) AS listed"
        for condition in lists
    ]
    return f"SELECT id FROM ({UNION.join(posts)}) AS post {first}"


def _conditions(part: str, by_tag: bool, has_labels: bool) -> tuple[str, str]:
    """Return two conditions for a match: one on the texts, and one on the index, which ignores word order."""
    column, indexed = (TITLE, f"btrim({TITLE})") if part == TITLE else (TEXT, "words")
    has_texts = HAS_TEXTS.format(column)
    has_lexemes = f"{LEXEMES.format(indexed)} @@ :lexemes::tsquery AND {column} LIKE ALL (:phrases::text[])"
    both = HAS_LABELS if has_labels else ""
    if by_tag:
        has_texts += " AND labels && :tags::bigint[]"
        has_lexemes += f" AND {LEXEMES.format('words')} @@ :tag_lexemes::tsquery"
    if part == TEXT:
        both += f" AND NOT {TITLE} LIKE ALL (:texts::text[])"
    return has_texts + both, has_lexemes + both
