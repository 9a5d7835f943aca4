"""The search: posts are found by the words that they have, and by no others."""

from typing import Any

from blogapi.storage.index import OF_TAG, START, STATUS, TAG, changed
from blogapi.storage.query import Param, Statement
from blogapi.storage.transaction import Reader, Transaction
from blogapi.storage.words import sequences

QUICK_POSTS = 20_000  # in which any search takes a few milliseconds


def reindex(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any], at_once: bool = False) -> None:
    """Let a post be found as it is, and no longer as it was; {} for no post. Fields that are the same can be left out.

    The index is written at the end of the transaction, unless `at_once`, which keeps nothing in memory until then.
    """
    run = tx.execute if at_once else tx.execute_at_end
    removed, added = changed(old, new)
    if removed:
        run(_remove, id=post_id, words=removed)
    if added:
        run(_add, id=post_id, words=added)


_add = Statement("INSERT INTO search (rowid, words) VALUES (?, ?)", [Param("id"), Param("words")])
_remove = Statement("INSERT INTO search (search, rowid, words) VALUES ('delete', ?, ?)", [Param("id"), Param("words")])
_last_post = Statement("SELECT ifnull(max(id), 0) FROM post", [])


def expression(q: str, status: str | None = None, tag: str | None = None) -> str:
    """Return what SQLite is to look for: only words of ours, in quotes, so that nothing has a meaning of SQLite's."""
    terms = [f"({_term(sequence, by_start)})" for sequence, by_start in dict.fromkeys(sequences(q))]
    if status:
        terms.append(f'"{STATUS}{status}"')
    if tag:
        terms.append(f'"{TAG}{tag.encode().hex()}"')
    return " AND ".join(terms)


def is_quick(reader: Reader, q: str, status: str | None = None, tag: str | None = None) -> bool:
    """Return whether a search takes no longer than a list: one for one word, or among not too many posts."""
    found = list(sequences(q))
    one_word = len(found) == len(found[0][0]) == 1 and not (status or tag)
    if one_word and not (found[0][1] and len(found[0][0][0]) > 1):
        return True
    return reader.row(_last_post)[0] <= QUICK_POSTS


def _term(sequence: tuple[str, ...], by_start: bool) -> str:
    """Return what finds a sequence in a text or in a tag."""
    if by_start and len(sequence) == len(sequence[0]) == 1:
        sequence, by_start = (START + sequence[0],), False
    star = " *" if by_start else ""
    return " OR ".join(f'"{" ".join(mark + word for word in sequence)}"{star}' for mark in ("", OF_TAG))
