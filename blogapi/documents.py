"""Define the fields of a post and its document, the compact JSON that the database stores and the API sends."""

import json
import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

from xxhash import xxh3_128_hexdigest

from blogapi.storage.errors import Damaged

STATUSES = ("published", "draft", "scheduled", "archived")
MAX_TITLE, MAX_CONTENT = 255, 1_000_000  # characters
MAX_SLUG, MAX_URL, MAX_TAG = 100, 2048, 64
MAX_TAGS = 50
MAX_PARAM_NAME, MAX_INTEGER = 64, 2**53  # limits on `params`
MAX_FORMER_SLUGS = 20
ID_PATTERN = "[1-9][0-9]{0,18}"
SLUG_PATTERN = "[a-z0-9]+(-[a-z0-9]+)*"

Kind = Literal["id", "line", "text", "status", "slug", "tags", "url", "time", "params", "slugs"]


class Field(NamedTuple):
    """A field of a post, as used by the API, Markdown files, imports, push, pull and the owner's page.

    The kind determines how the field is validated, read from front matter and shown in a form. A client must set a
    "required" field. The service sets a "default" field if the client does not, and only the service sets a "service"
    field. An "optional" field can be missing from a post.
    """

    kind: Kind
    presence: Literal["required", "default", "optional", "service"]
    description: str  # without the limits, which the schema adds
    example: Any = None
    max_length: int = 0  # maximum length, in characters or in list items; 0 if the kind sets the limits
    empty: Any = None  # the value that clears the field, except params in a PATCH; None if the field cannot be cleared
    stays: bool = False  # whether the field keeps its value in a PUT without it and when an earlier version is restored
    order: int = 8  # position in front matter; equal numbers keep the order below, and 0 means none
    label: str = ""  # label on the owner's page; by default, the name


TIME = "2026-11-20T10:10:00Z"
# All fields, in the order in which they are stored. docs/reference.md has a table of them.
FIELDS: dict[str, Field] = {
    "id": Field("id", "service", "The id, a number as a string; never reused.", "1", stays=True, order=10),
    "title": Field("line", "required", "The title.", "Three days at the lake", MAX_TITLE, order=1),
    "status": Field(
        "status", "default", "By default, `draft`; an existing post keeps its status.", "published", stays=True, order=4
    ),
    "slug": Field(
        "slug", "default", "Unique; by default from the title.", "three-days-at-the-lake", MAX_SLUG, stays=True, order=2
    ),
    "content": Field(
        "text", "required", "Markdown, kept byte for byte.", "**Friday.** Fog, and a lake.\n", MAX_CONTENT, order=0
    ),
    "excerpt": Field("text", "optional", "A short summary for lists.", "Fog, wind, and then the sun.", 1000, empty=""),
    "tags": Field(
        "tags", "default", "The tags, in this order.", ["Travel", "Lake Constance"], MAX_TAGS, empty=[], order=7
    ),
    "cover_image": Field("url", "optional", "An image's address.", "https://example.org/lake.jpg", MAX_URL, empty=""),
    "published_at": Field(
        "time",
        "optional",
        "When the post was published, or will be if it is `scheduled`; RFC 3339 with an offset. A draft keeps it until "
        "it is published. By default, the time of the publication.",
        TIME,
        stays=True,
        order=5,
        label="Date",
    ),
    "created_at": Field("time", "service", "When it was created, in UTC, to the second.", TIME, stays=True, order=6),
    "updated_at": Field("time", "service", "When it last changed; at first, created_at.", TIME, stays=True, order=0),
    "params": Field("params", "optional", "Values for templates.", {"author": "Ada", "math": True}, empty={}, order=9),
    "former_slugs": Field(
        "slugs",
        "optional",
        "The slugs that the post has had since it was published, newest first. They still lead to the post, and no "
        "other post can use them. A PUT that leaves them out keeps them; null or [] gives them up.",
        max_length=MAX_FORMER_SLUGS,
        empty=[],
        stays=True,
        order=3,
    ),
}
LISTED = ("id", "title", "status")  # the fields that every list contains
WITHOUT_CONTENT = [name for name in FIELDS if name != "content"]
MALFORMED = (AttributeError, LookupError, TypeError, ValueError)  # raised if values in a document have wrong types
OPTIONAL = frozenset(name for name, field in FIELDS.items() if field.presence == "optional")
REQUIRED = frozenset(FIELDS) - OPTIONAL  # fields that every post has
SET_BY_SERVICE = tuple(name for name, field in FIELDS.items() if field.presence == "service")
INPUT_FIELDS = tuple(name for name in FIELDS if name not in SET_BY_SERVICE)  # fields that clients set
STAYING = tuple(name for name, field in FIELDS.items() if field.stays)
EMPTY = {name: field.empty for name, field in FIELDS.items() if field.empty is not None}  # fields that can be cleared
SHORT_TEXTS = [name for name, field in FIELDS.items() if field.kind in ("line", "text") and name != "content"]
EXAMPLE = {name: field.example for name, field in FIELDS.items() if field.example is not None}
EXAMPLE_WITHOUT_CONTENT = {name: value for name, value in EXAMPLE.items() if name != "content"}
DECODER = json.JSONDecoder()
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def is_slug(text: str) -> bool:
    """Return whether a string can be the slug of a post."""
    return len(text) <= MAX_SLUG and re.fullmatch(SLUG_PATTERN, text) is not None


def in_order(post: dict[str, Any]) -> dict[str, Any]:
    """Return a post with its fields in order, and without empty optional fields."""
    return {name: post[name] for name in FIELDS if name in REQUIRED or post.get(name)}


def slug_in(document: bytes) -> str:
    """Return the slug in a document without parsing it. No field before the slug can contain an unescaped quote."""
    return document.partition(b'"slug":"')[2].partition(b'"')[0].decode()


def dump(value: dict[str, Any] | list[Any]) -> str:
    """Return compact JSON. For a post with its fields in order, the result is its document."""
    return ENCODER.encode(value)


def load(document: bytes | None) -> dict[str, Any]:
    """Parse a document. Raises Damaged."""
    try:
        post = DECODER.decode(intact(document).decode())
        if post.keys() >= REQUIRED:
            return post
    except MALFORMED as error:
        raise Damaged from error
    raise Damaged


def etag_of(document: bytes) -> str:
    """Return the strong entity tag of a post, without quotes (RFC 9110, section 8.8.3).

    The hash is cryptographic, so that clients cannot craft two versions with the same tag. It is BLAKE2b, because
    SHA-256 takes twice as long on processors without SHA instructions.
    """
    return blake2b(document, digest_size=32).hexdigest()


def hash_of(content: bytes) -> str:
    """Return a fast hash, for content where a collision would be harmless."""
    return xxh3_128_hexdigest(content)


def etags(document: bytes | None) -> tuple[str, ...]:
    """Return a post's entity tags: those of its JSON and its Markdown file. A missing post has none."""
    if document is None:
        return ()
    tag = etag_of(document)
    return tag, f"{tag}-md"


def intact(document: bytes | None) -> bytes:
    """Return a document. Raises Damaged if it is None."""
    if document is None:  # A damaged SQLite file can return NULL even from a NOT NULL column.
        raise Damaged
    return document


def cut(document: bytes, fields: Iterable[str]) -> bytes:
    """Return a document reduced to these fields. Raises Damaged."""
    post = load(document)
    return dump({name: post[name] for name in fields if name in post}).encode()


def each_text(value: Any, replace: Callable[[str], str]) -> Any:
    """Return a field's value with `replace` applied to each string in it."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, list):
        return [each_text(item, replace) for item in value]
    return {name: each_text(part, replace) for name, part in value.items()} if isinstance(value, dict) else value


def filtered(value: Any, keep: Callable[[str, Any], bool]) -> Any:
    """Return a field's value without the entries, at any depth, for which `keep(name, value)` is false."""
    if isinstance(value, list):
        return [filtered(item, keep) for item in value]
    if isinstance(value, dict):
        return {name: filtered(part, keep) for name, part in value.items() if keep(name, part)}
    return value
