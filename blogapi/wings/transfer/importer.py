"""The import: check posts that were read, and store them in batches."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from marshmallow import ValidationError

from blogapi import documents
from blogapi.api.schemas import sentences
from blogapi.documents import MAX_FORMER_SLUGS
from blogapi.posts import publication, slugs
from blogapi.posts import storage as posts
from blogapi.posts.schemas import PutPostSchema
from blogapi.storage.database import Database
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import Damaged, NotFound, Rejected
from blogapi.wings.history.batches import write_each
from blogapi.wings.transfer.images import IMAGE_ERRORS, reason_of
from blogapi.wings.transfer.sources import Failure, Item

BATCH_POSTS = 100  # at most this many posts are checked before a transaction begins
BATCH_CHARACTERS = 1_000_000  # or this many characters of content
BY = "import"  # author in the history

schema = PutPostSchema()

Checked = Item | list[Failure]  # a valid post, or what is wrong with it
ImportResult = tuple[str, Checked]  # the first is the outcome of `posts.put`, or "failed"
Keep = Callable[[str], None]  # stores the image in a file


def store(
    database: Database, sources: Iterable[Item | Failure], events: bool, keep: Keep | None = None
) -> Iterator[ImportResult]:
    """Create or update posts; yield each result once it is on disk, outside of transactions. Raises Unavailable.

    The images of a post are stored before it.
    """

    def put(tx: Transaction, item: Item) -> str:
        slug, fields = item.fields["slug"], item.fields
        return posts.put(tx, slug, fields, BY, created_at=item.created_at, with_events=events).outcome

    for batch in batches(sources, keep):
        yield from write_each(database, partial(_result, put), batch)


def foresee(database: Database, sources: Iterable[Item | Failure], keep: Keep | None = None) -> Iterator[ImportResult]:
    """Yield the results that `store` would yield."""
    return (_result(_would_put, database, checked(source, keep)) for source in sources)


def with_former_slugs(reader: Reader, item: Item) -> Item:
    """Add the former slugs that the post already has here to those in the import; leave out those that are taken."""
    slug, given, kept = item.fields["slug"], item.fields.get("former_slugs"), []
    if not given:
        return item
    with suppress(NotFound, Damaged):
        kept = documents.load(posts.find(reader, slug)).get("former_slugs", [])
    wanted = list(dict.fromkeys([*kept, *(each for each in given if each != slug)]))
    post_id, _ = slugs.holder(reader, slug) or (0, "")
    free = (slugs.still_free(reader, wanted, post_id) or [])[:MAX_FORMER_SLUGS]
    notes = item.notes if free == wanted else item.notes | {"former slugs": item.file.line_of("former_slugs")}
    return replace(item, fields=item.fields | {"former_slugs": free}, notes=notes)


def _would_put(reader: Reader, item: Item) -> str:
    try:
        old = documents.load(posts.find(reader, item.fields["slug"]))
        posts.refuse_former_slug(old, item.fields["slug"])
    except NotFound:
        publication.published_at({}, {"status": "draft"} | item.fields, reader.now)
        return "created"
    return "unchanged" if posts.is_same(old, posts.as_put(old, item.fields, reader.now)) else "updated"


def batches(sources: Iterable[Item | Failure], keep: Keep | None = None) -> Iterator[list[Checked]]:
    """Yield checked posts in batches that fit into memory."""
    batch, size = [], 0
    for source in sources:
        batch.append(checked(source, keep))
        size += len(source.fields.get("content", "")) if isinstance(source, Item) else 0
        if len(batch) == BATCH_POSTS or size > BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    yield batch


def checked(source: Item | Failure, keep: Keep | None = None) -> Checked:
    """Validate a post and store its images; return it, or what is wrong with it."""
    if isinstance(source, Failure):
        return [source]
    try:
        item = replace(source, fields=schema.load(source.fields))
    except ValidationError as error:
        line_of = source.file.line_of
        return [Failure(source.source, line_of(field), sentence) for field, sentence in sentences(error)]
    for file in item.images:
        try:
            if keep:
                keep(file)
        except IMAGE_ERRORS as error:
            return [Failure(source.source, None, f"its image {file}: {reason_of(error)}")]
    return item


def _result(put: Callable[[Any, Item], str], reader: Reader, checked: Checked) -> ImportResult:
    if isinstance(checked, list):
        return "failed", checked
    try:
        item = with_former_slugs(reader, checked)
        return put(reader, item), item
    except (Rejected, Damaged) as error:  # raised before anything was written
        line_of = checked.file.line_of
        line = line_of(error.field) or line_of("status") if isinstance(error, Rejected) else None
        return "failed", [Failure(checked.source, line, str(error))]
