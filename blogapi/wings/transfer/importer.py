"""Import posts: validate them, and store them in batches."""

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
from blogapi.posts.schemas import PostInputSchema
from blogapi.search import index
from blogapi.storage.database import Database, write_each
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import Damaged, DoesNotExist, Rejected
from blogapi.storage.models import Author
from blogapi.wings.transfer.folder import reason_of
from blogapi.wings.transfer.images import IMAGE_ERRORS
from blogapi.wings.transfer.items import Failure, Item, Note

BATCH_POSTS = 100  # maximum number of posts in a batch
BATCH_CHARACTERS = 1_000_000  # a batch ends after the post that exceeds this total
BY = Author("import")  # author in the history

schema = PostInputSchema()

Checked = Item | list[Failure]  # a valid post, or the reasons why it is invalid
ImportResult = tuple[str, Checked]  # begins with the outcome of `posts.put`, or with "failed"


def store(database: Database, checked_posts: Iterable[Checked], events: bool) -> Iterator[ImportResult]:
    """Create or update posts, and yield each result once it is on disk. Then tidy the index. Raises Unavailable."""

    def put(tx: Transaction, item: Item) -> str:
        slug, fields = item.fields["slug"], item.fields
        return posts.put(tx, slug, fields, BY, created_at=item.created_at, with_events=events).outcome

    for batch in batches(checked_posts):
        yield from write_each(database, partial(_result, put), batch)
    index.tidy(database)


def predict(database: Database, checked_posts: Iterable[Checked]) -> Iterator[ImportResult]:
    """Yield the results that `store` would yield."""
    return map(partial(_result, _would_put, database), checked_posts)


def with_former_slugs(reader: Reader, item: Item) -> Item:
    """Add the former slugs of the stored post to those of an item, and remove the ones that are taken."""
    slug, former, kept = item.fields["slug"], item.fields.get("former_slugs"), []
    if not former:
        return item
    with suppress(DoesNotExist, Damaged):
        kept = documents.load(posts.get(reader, slug)).get("former_slugs", [])
    candidates = list(dict.fromkeys([*kept, *(old_slug for old_slug in former if old_slug != slug)]))
    holder = slugs.find_holder(reader, slug)
    free = slugs.still_free(reader, candidates, holder.id if holder else 0)[:MAX_FORMER_SLUGS]
    notes = item.notes if free == candidates else item.notes | {Note.FORMER_SLUGS: item.file.line_of("former_slugs")}
    return replace(item, fields=item.fields | {"former_slugs": free}, notes=notes)


def _would_put(reader: Reader, item: Item) -> str:
    try:
        old = documents.load(posts.get(reader, item.fields["slug"]))
        posts.refuse_former_slug(old, item.fields["slug"])
    except DoesNotExist:
        publication.publication_date({}, {"status": "draft"} | item.fields, reader.now)
        return "created"
    new = publication.as_put(old, item.fields, reader.now, slugs.was_public(reader, old, item.fields))
    return "unchanged" if posts.is_same(old, new) else "updated"


def batches(checked_posts: Iterable[Checked]) -> Iterator[list[Checked]]:
    """Group posts into batches that fit into memory."""
    batch, size = [], 0
    for post in checked_posts:
        batch.append(post)
        size += len(post.fields["content"]) if isinstance(post, Item) else 0
        if len(batch) == BATCH_POSTS or size > BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    yield batch


def checked(source: Item | Failure) -> Checked:
    """Validate a post. Return it, or the reasons why it is invalid."""
    if isinstance(source, Failure):
        return [source]
    try:
        return replace(source, fields=schema.load(source.fields))
    except ValidationError as error:
        line_of = source.file.line_of
        return [Failure(source.source, line_of(field), sentence) for field, sentence in sentences(error)]


def with_stored_images(store_image: Callable[[str], None], post: Checked) -> Checked:
    """Store each image of a valid post with `store_image`. Return the post, or the reason for a failure."""
    if isinstance(post, Item):
        for file in post.images:
            try:
                store_image(file)
            except IMAGE_ERRORS as error:
                return [Failure(post.source, None, f"its image {file}: {reason_of(error)}")]
    return post


def _result(put: Callable[[Any, Item], str], reader: Reader, post: Checked) -> ImportResult:
    if isinstance(post, list):
        return "failed", post
    try:
        item = with_former_slugs(reader, post)
        return put(reader, item), item
    except (Rejected, Damaged) as error:  # Nothing was written.
        line_of = post.file.line_of
        line = line_of(error.field) or line_of("status") if isinstance(error, Rejected) else None
        return "failed", [Failure(post.source, line, str(error))]
