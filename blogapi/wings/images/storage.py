"""Store images in parts, read them in pieces, and find where they are used."""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import timedelta
from itertools import chain, islice
from typing import Any, BinaryIO, NamedTuple

from peewee import Tuple, fn

from blogapi.clock import earlier
from blogapi.documents import STATUSES
from blogapi.paging import Cursor, Page
from blogapi.storage.engine import AsBytes, Compiled, Placeholder, Reader, Transaction, placeholders
from blogapi.storage.errors import Damaged, Rejected, Unavailable
from blogapi.storage.keys import digest_of
from blogapi.storage.models import DraftCopy, Post, Proposal, Revision, model
from blogapi.wings.images.formats import EXTENSIONS, ImageFile, read_image

PART_BYTES = 256 * 1024  # bytes written per transaction
PIECE_BYTES = 64 * 1024  # bytes per read
MAX_DELETED_PARTS = 16  # parts deleted per transaction
UPLOAD_TIME = timedelta(days=1)  # the parts of an unfinished upload are deleted after this time
PAGE_SIZE = 1000  # images per query
MAX_USES = 3  # list at most this many uses of an image
IMAGE_ID = "[0-9a-f]{32}"
IMAGE_PATH = re.compile(rf"/images/({IMAGE_ID})\.".encode())
MAX_FILE_NAME = 255  # characters
UploadCheck = Callable[[Reader], None] | None  # called before an image is added; raises to refuse it
NOT_IN_NAME = re.compile(r'^.*[/\\]|[\x00-\x1f\x7f-\x9f"\u2028\u2029\ud800-\udfff]', re.DOTALL)

Image, ImagePart, FetchedImage = map(model, ("image", "image_part", "fetched_image"))


class StoredImage(NamedTuple):
    """An image without its content; `bytes` is its size."""

    id: str
    upload: str
    name: str
    type: str
    bytes: int
    width: int
    height: int
    created_at: str

    @property
    def path(self) -> str:
        """The path in the image's public URL."""
        return f"/images/{self.id}.{EXTENSIONS[self.type]}"


class Use(NamedTuple):
    """A use of an image: in a post, a revision, a post in the trash, a proposal or an unsaved draft."""

    kind: str  # "post", "proposed", or the `state` of a revision or of an unsaved draft
    post_id: int | None  # None for the unsaved draft of a new post
    version: int = 0  # version number of a revision or of a post in the trash
    slug: str = ""  # the post's slug, if the use is in a post

    def __str__(self) -> str:
        if self.kind == "post":
            return f"post {self.post_id} ({self.slug})"
        if self.kind == "deleted":
            return f"post {self.post_id} in the trash"
        if self.version:
            return f"revision {self.version} of post {self.post_id}"
        what = "a proposal" if self.kind == "proposed" else "unsaved text"
        return f"{what} for {f'post {self.post_id}' if self.post_id else 'a new post'}"


def get(reader: Reader, image_id: str) -> StoredImage:
    """Return an image. Raises DoesNotExist."""
    return StoredImage._make(reader.get("image", SELECT_IMAGE, id=image_id))


def find(reader: Reader, image_id: str) -> StoredImage | None:
    row = reader.row(SELECT_IMAGE, id=image_id)
    return StoredImage._make(row) if row else None


_columns = [getattr(Image, name) for name in StoredImage._fields]
SELECT_IMAGE = Compiled(Image.select(*_columns).where(Image.id == Placeholder("id")))


def page(
    reader: Reader, limit: int, before: Cursor[str] | None = None, name: str = ""
) -> Page[StoredImage, Cursor[str]]:
    """Return a page of images whose names contain `name`, newest first. Raises DoesNotExist for an unknown cursor."""
    query = Image.select(*_columns).order_by(Image.created_at.desc(), Image.id.desc()).limit(limit + 1)
    if before:
        created_at = before.key or get(reader, before.id).created_at
        query = query.where(Tuple(Image.created_at, Image.id) < Tuple(created_at, before.id))
    if name:
        query = query.where(Image.name.contains(name))
    images = [*map(StoredImage._make, reader.rows(query))]
    last = images[limit - 1] if len(images) > limit else None
    return Page(images[:limit], Cursor(last.created_at, last.id) if last else None)


def every(reader: Reader) -> Iterator[StoredImage]:
    """Yield all images, newest first. Only one page is in memory at a time."""
    images = page(reader, PAGE_SIZE)
    yield from images.items
    while images.next:
        images = page(reader, PAGE_SIZE, images.next)
        yield from images.items


def total_bytes(reader: Reader) -> int:
    row = reader.row(SELECT_TOTAL)
    return row[0] if row else 0


SELECT_TOTAL = Compiled("SELECT bytes FROM image_total")
UPDATE_TOTAL = Compiled(
    "INSERT INTO image_total VALUES (1, :bytes) "
    "ON CONFLICT (id) DO UPDATE SET bytes = image_total.bytes + excluded.bytes"
)


def read(reader: Reader, image: StoredImage, start: int, end: int) -> Iterator[bytes]:
    """Yield an image's bytes from `start` to `end` in pieces. May raise Unavailable after some pieces."""
    while start < end:
        number, offset = divmod(start, PART_BYTES)
        length = min(PIECE_BYTES - offset % PIECE_BYTES, end - start)
        piece = reader.row(SELECT_PIECE, upload=image.upload, number=number, start=offset + 1, length=length)
        if not piece or len(piece[0]) != length:
            raise Unavailable(f"the image {image.id} is damaged or was deleted")
        yield bytes(piece[0])
        start += length


SELECT_PIECE = Compiled(
    "SELECT substr(content, CAST(:start AS integer), CAST(:length AS integer)) FROM image_part "
    "WHERE upload = :upload AND number = :number"
)


# Uploads


def identify(file: BinaryIO, name: str) -> tuple[StoredImage, ImageFile]:
    """Return the image in a file, and the pieces of the file to store. Raises the same exceptions as `read_image`."""
    image, digest, size = read_image(file), hashlib.sha256(), 0
    for part in image.parts(PART_BYTES):
        digest.update(part)
        size += len(part)
    image_id = digest.hexdigest()[:32]
    name = NOT_IN_NAME.sub("", name)[-MAX_FILE_NAME:] or f"{image_id[:8]}.{EXTENSIONS[image.type]}"
    return StoredImage(image_id, "", name, image.type, size, image.width, image.height, ""), image


def store(
    reader: Reader, write: Callable[..., Any], image: StoredImage, kept: ImageFile, check: UploadCheck = None
) -> tuple[StoredImage, bool]:
    """Store an image that `identify` has returned: first its parts, then its row. Return it, and whether it is new.

    `write` works like `Database.write`. `check` runs in the last transaction. Raises Unavailable.
    """
    image = image._replace(upload=f"{reader.now}_{secrets.token_hex(8)}")
    stored = None
    try:
        for number, part in enumerate(kept.parts(PART_BYTES)):
            write(add_part, image.upload, number, part)
            reader.engine.loop.pause()
        stored = write(add, image, check)
        return stored, stored.upload == image.upload
    finally:
        if stored is None or stored.upload != image.upload:
            delete_upload(reader, write, image.upload)


def add_part(tx: Transaction, upload: str, number: int, content: bytes) -> None:
    if number == 0:
        tx.execute(INSERT_UPLOAD, name=upload)
    tx.execute(INSERT_PART, upload=upload, number=number, content=content)


INSERT_UPLOAD = Compiled("INSERT INTO upload (name) VALUES (:name)")
DELETE_UPLOAD = Compiled("DELETE FROM upload WHERE name = :name")
INSERT_PART = Compiled(ImagePart.insert(placeholders(ImagePart)))


def add(tx: Transaction, image: StoredImage, check: UploadCheck = None) -> StoredImage:
    """Finish an upload. Return the image, or an existing image with the same content. Raises Unavailable."""
    if known := find(tx, image.id):
        return known
    (parts,) = tx.one(ImagePart.select(fn.count(ImagePart.number)).where(ImagePart.upload == image.upload))
    if parts != -(-image.bytes // PART_BYTES):
        raise Unavailable("the upload took longer than a day, or the clock is wrong")
    if check:
        check(tx)
    image = image._replace(created_at=tx.now)
    tx.execute(Image.insert(image._asdict()))
    tx.execute(DELETE_UPLOAD, name=image.upload)
    tx.execute(UPDATE_TOTAL, bytes=image.bytes)
    return image


# Images that an import downloaded


def find_fetched(reader: Reader, url: str) -> StoredImage | None:
    """Return the image that was downloaded from this URL, if it is still stored."""
    row = reader.row(SELECT_FETCHED, url=digest_of(url))
    return find(reader, row[0]) if row else None


def remember_fetched(tx: Transaction, url: str, image_id: str) -> None:
    tx.execute(INSERT_FETCHED, url=digest_of(url), id=image_id)


SELECT_FETCHED = Compiled(FetchedImage.select(FetchedImage.image_id).where(FetchedImage.url == Placeholder("url")))
INSERT_FETCHED = Compiled("INSERT INTO fetched_image VALUES (:url, :id) ON CONFLICT (url) DO UPDATE SET image_id = :id")


# Deletion


def uses_of(reader: Reader, image_id: str) -> list[Use]:
    """Return up to MAX_USES uses of an image in posts, revisions, the trash, proposals and unsaved drafts."""
    return _find_uses(reader, image_id, POSTS_THAT_SHOW, REVISIONS_THAT_SHOW, WAITING_THAT_SHOW)


def _find_uses(reader: Reader, image_id: str, *queries: Compiled, since: str = "") -> list[Use]:
    values = {"path": f"/images/{image_id}.", "since": since}
    rows = chain.from_iterable(reader.rows(query, **values) for query in queries)
    return [Use(*row) for row in islice(rows, MAX_USES)]


def refuse_used(uses: Iterable[Use]) -> None:
    """Raise Rejected if there are any uses of an image, and list them."""
    if used_in := ", ".join(map(str, uses)):
        raise Rejected("image", f"still used in {used_in}")


def _uses_query(query: str) -> Compiled:
    """Compile a query, replacing {shows} with the condition that `document` contains the image's URL."""
    sqlite, postgresql = "instr(document, :path) > 0", "position(:path IN document) > 0"
    return Compiled(sqlite=query.format(shows=sqlite), postgresql=query.format(shows=postgresql))


_use = "SELECT 'post', id, 0, slug FROM post WHERE"
_is_recent = f"status IN {STATUSES} AND updated_at >= :since"
POSTS_THAT_SHOW = _uses_query(f"{_use} {{shows}} ORDER BY id LIMIT {MAX_USES}")
RECENT_POSTS_THAT_SHOW = _uses_query(f"{_use} {_is_recent} AND {{shows}} LIMIT 1")
_revision = "SELECT state, post_id, version FROM revision WHERE"
REVISIONS_THAT_SHOW = _uses_query(f"{_revision} {{shows}} ORDER BY state DESC, post_id LIMIT {MAX_USES}")
RECENT_REVISIONS_THAT_SHOW = _uses_query(
    f"{_revision} state IN ('replaced', 'deleted', 'restored') AND until >= :since AND {{shows}} LIMIT 1"
)
_waiting = """
    SELECT 'proposed' AS kind, post_id, created_at AS time, document FROM proposal
    UNION ALL SELECT state, post_id, saved_at, fields FROM draft_copy
"""
WAITING_THAT_SHOW = _uses_query(
    f"SELECT kind, post_id FROM ({_waiting}) AS waiting "
    f"WHERE time >= :since AND {{shows}} ORDER BY time LIMIT {MAX_USES}"
)


def used_ids(reader: Reader) -> set[str]:
    """Return the ids of all images in posts, revisions, the trash, proposals and unsaved drafts. Raises Damaged."""
    image_ids: set[str] = set()
    for column in (Post.document, Revision.document, Proposal.document, DraftCopy.fields):
        for (text,) in reader.rows(column.model.select(AsBytes(column))):
            if text is None:
                raise Damaged
            image_ids.update(image_id.decode() for image_id in IMAGE_PATH.findall(bytes(text)))
    return image_ids


def delete(tx: Transaction, image_id: str, since: str) -> str:
    """Delete an image that was unused at the time `since`. Return its upload. The caller must delete the parts.

    Raises DoesNotExist, or Rejected if the image is used in anything that has changed since then.
    """
    image = get(tx, image_id)
    queries = RECENT_POSTS_THAT_SHOW, RECENT_REVISIONS_THAT_SHOW, WAITING_THAT_SHOW
    refuse_used(_find_uses(tx, image_id, *queries, since=since))
    tx.execute(Image.delete().where(Image.id == image_id))
    tx.execute(INSERT_UPLOAD, name=image.upload)
    tx.execute(UPDATE_TOTAL, bytes=-image.bytes)
    return image.upload


def delete_parts(tx: Transaction, upload: str) -> int:
    """Delete some parts of an upload, unless it belongs to an image. Return how many were deleted."""
    if not tx.row(SELECT_UPLOAD, name=upload):
        return 0
    parts = ImagePart.select(ImagePart.number).where(ImagePart.upload == upload).limit(MAX_DELETED_PARTS)
    numbers = [number for (number,) in tx.rows(parts)]
    if len(numbers) < MAX_DELETED_PARTS:
        tx.execute(DELETE_UPLOAD, name=upload)
    return tx.execute(ImagePart.delete().where(ImagePart.upload == upload, ImagePart.number.in_(numbers)))


def delete_upload(reader: Reader, write: Callable[..., Any], upload: str) -> None:
    """Delete the parts of an upload in batches. If a batch fails, `prune` deletes the rest later."""
    with suppress(Unavailable):
        while write(delete_parts, upload):
            reader.engine.loop.pause()


def prune(tx: Transaction) -> int:
    """Delete some parts of an unfinished upload older than UPLOAD_TIME. Return how many were deleted."""
    row = tx.row(SELECT_OLD_UPLOAD, time=earlier(tx.now, UPLOAD_TIME))
    return delete_parts(tx, row[0]) if row else 0


SELECT_UPLOAD = Compiled("SELECT name FROM upload WHERE name = :name")
SELECT_OLD_UPLOAD = Compiled("SELECT name FROM upload WHERE name < :time ORDER BY name LIMIT 1")
