"""Drops former slugs that were never public. Version 1.2.0 wrongly kept such slugs for drafts with a date.

A former slug is kept if a version of the post was published under it, or if a client wrote it. A client wrote it
if it first appears in version 1, or in a version whose predecessor had a different slug.
"""

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from blogapi.storage.upgrades import Execute

FORMER = """document LIKE '%"former_slugs":%'"""
POSTS = f"SELECT post_id FROM revision WHERE {FORMER} UNION SELECT id FROM post WHERE {FORMER} ORDER BY 1"
# The tables that contain versions, oldest first, and the column with the post's id in each table
KEYS = {"revision": "post_id", "post": "id"}
# Keeps the current slug of an unpublished post, if the post was published under it
KEEP_PRESENT = """
INSERT INTO former_slug SELECT DISTINCT slug, id FROM post JOIN revision ON post_id = id
WHERE status <> 'published' AND revision.document LIKE '%"status":"published","slug":"' || slug || '"%'
"""
SEEN = "post %s: dropped its former slug %s, which others may have seen: no known version was published under it"

log = logging.getLogger(__name__)


class Version(NamedTuple):
    """The slugs of a version of a post."""

    table: str
    number: int
    slug: str
    is_published: bool
    former: list[str]


def compute(execute: Execute) -> None:
    """Drop the former slugs that were never public, and log those that others may have seen."""
    for (post_id,) in list(execute(POSTS)):
        versions = list(_versions(execute, post_id))
        former = {slug for version in versions for slug in version.former}
        public = {version.slug for version in versions if version.is_published}
        dropped = former - public - {*_written(versions)}
        for version in versions:
            if not dropped.isdisjoint(version.former):
                _drop(execute, post_id, version, dropped)
        for slug in sorted(dropped):
            execute("DELETE FROM former_slug WHERE slug = ? AND post_id = ?", (slug, post_id))
            if any(slug in version.former for version in versions if version.is_published):
                log.warning(SEEN, post_id, slug)
    execute(KEEP_PRESENT)


def _versions(execute: Execute, post_id: int) -> Iterator[Version]:
    """Yield the versions of a post, except those whose documents are damaged."""
    for table, key in KEYS.items():
        query = f"SELECT version FROM {table} WHERE {key} = ? ORDER BY version"
        for (number,) in list(execute(query, (post_id,))):
            with suppress(TypeError, ValueError, KeyError):  # Skip a damaged version.
                document = f"SELECT document FROM {table} WHERE {key} = ? AND version = ?"
                post = json.loads(execute(document, (post_id, number)).fetchone()[0])
                yield Version(table, number, post["slug"], post["status"] == "published", post.get("former_slugs", []))


def _written(versions: Iterable[Version]) -> Iterator[str]:
    """Yield the former slugs that a client wrote."""
    last = Version("", 0, "", False, [])
    for version in versions:
        if version.number == last.number + 1:
            yield from {*version.former} - {*last.former, last.slug}
        last = version


def _drop(execute: Execute, post_id: int, version: Version, dropped: set[str]) -> None:
    """Drop former slugs from a version of a post."""
    where = f"WHERE {KEYS[version.table]} = ? AND version = ?"
    place = (post_id, version.number)
    post = json.loads(execute(f"SELECT document FROM {version.table} {where}", place).fetchone()[0])
    post["former_slugs"] = [slug for slug in version.former if slug not in dropped]
    if not post["former_slugs"]:
        del post["former_slugs"]
    document = json.dumps(post, ensure_ascii=False, separators=(",", ":"))
    execute(f"UPDATE {version.table} SET document = ? {where}", (document, *place))
