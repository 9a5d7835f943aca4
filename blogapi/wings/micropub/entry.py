"""Convert microformats entries to posts and back."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from marshmallow import ValidationError

from blogapi.api.schemas import URL
from blogapi.documents import MAX_CONTENT, MAX_TITLE, MAX_URL
from blogapi.markdown import NOT_IN_URL, image_of, safe_markdown_of
from blogapi.markdown.files import heading
from blogapi.markdown.front_matter import MarkdownError
from blogapi.posts.publication import FUTURE, status_meant
from blogapi.posts.slugs import slug_of
from blogapi.storage.errors import Rejected
from blogapi.text import CONTROL_OR_BREAK, VISIBLE, fold
from blogapi.wings.micropub.message import Submission, without_empty

# property with a single value -> field
FIELDS_BY_PROPERTY = {"name": "title", "content": "content", "summary": "excerpt", "featured": "cover_image"}
FIELDS_BY_PROPERTY |= {"mp-slug": "slug", "published": "published_at", "post-status": "status"}
PROPERTIES_BY_FIELD = {field: name for name, field in FIELDS_BY_PROPERTY.items()} | {"tags": "category"}
CLEARED = ("summary", "featured")  # The other properties with a single value cannot be cleared.
KNOWN = {*FIELDS_BY_PROPERTY, "category", "photo", "mp-photo-alt", "visibility"}
NOT_SCHEDULED = "must not be in the future unless post-status is scheduled"
NOT_KEPT = ("in-reply-to", "like-of", "repost-of", "bookmark-of", "rsvp")
MAX_VALUES = 100  # per property
CUT_TITLE = 80  # maximum length of a title that is made from the first line (in characters)
MAX_BEGINNING, MAX_LINE = 10_000, 500  # search this many characters of the content, and of a line, for a title
MARKS = re.compile(r"^\s*([-*_]\s*){3,}$|!?\[([^\]]*)\]\([^)]*\)|^\s*(?:[#>]+|[-*+]|\d+[.)])(?:\s+|$)|[*_`~]+")

Properties = Mapping[str, list[Any]]


class Update(NamedTuple):
    """The properties that an update replaces, adds and deletes. In `deleted`, None means all values of a property."""

    replaced: dict[str, list[Any]]
    added: dict[str, list[Any]]
    deleted: Mapping[str, list[Any] | None]


@contextmanager
def property_names() -> Iterator[None]:
    """Replace field names with property names in errors that the `with` block raises."""
    try:
        yield
    except ValidationError as error:
        messages = {PROPERTIES_BY_FIELD.get(name, name): texts for name, texts in error.normalized_messages().items()}
        raise ValidationError(messages) from None
    except Rejected as error:
        reason = str(error).partition(": ")[2].replace(FUTURE, NOT_SCHEDULED)
        raise Rejected(PROPERTIES_BY_FIELD.get(error.field, error.field), reason) from None


def ignored(properties: Iterable[str]) -> list[str]:
    """Return the names of the properties that the service does not store."""
    return [name for name in properties if name not in KNOWN]


def refuse(properties: Iterable[str]) -> None:
    """Raise ValidationError if a new post is of an unsupported kind, such as a reply or a like."""
    for name in NOT_KEPT:
        if name in properties:
            raise ValidationError("is not supported, so nothing was changed", name)


def fields_of(properties: Properties) -> dict[str, Any]:
    """Convert properties to fields. An empty value becomes "" or []. Raises ValidationError."""
    fields: dict[str, Any] = {}
    for name, field in FIELDS_BY_PROPERTY.items():
        if name in properties:
            words = text(single(properties, name), name)
            fields[field] = status_of(words) if field == "status" else words
    if fields.get("slug"):
        fields["slug"] = slug_of(fields["slug"])
    if "category" in properties:
        fields["tags"] = [text(value, "category") for value in properties["category"]]
    if single(properties, "visibility") not in ("", "public"):
        raise ValidationError("must be public: private posts are refused, so that none is published", "visibility")
    return fields


def status_of(word: str) -> str:
    """Convert a program's word for a status to ours, because WordPress programs send `publish`."""
    return "published" if word == "publish" else word


def as_markdown(value: Any) -> tuple[Any, set[str]]:
    """Convert HTML content to Markdown. Also return the names of dropped elements. Raises ValidationError."""
    if not isinstance(value, dict) or "html" not in value:
        return value, set()
    html = text(value["html"], "content.html")
    try:
        return safe_markdown_of(html) if html.lstrip().startswith("<") else (html, set())
    except MarkdownError as error:
        raise ValidationError(error.reason, "content.html") from None


def single(properties: Properties, name: str) -> Any:
    """Return the value of a property, or "" if it has none. Raises ValidationError if it has several."""
    values = properties.get(name) or [""]
    if len(values) > 1:
        raise ValidationError("must have one value", name)
    return values[0]


def text(value: Any, name: str) -> str:
    """Return the text in a value. It can be in an object, under the name `value`. Raises ValidationError."""
    value = value.get("value") if isinstance(value, dict) else value
    if not isinstance(value, str):
        raise ValidationError("must be text", name)
    longest = MAX_CONTENT if name.startswith("content") else MAX_URL
    if len(value) > longest:
        raise ValidationError(f"must have at most {longest:,} characters", name)
    return value


def post_of(message: Submission, images: list[str], now: str, default_status: str) -> dict[str, Any]:
    """Return the unvalidated fields of a new post. `images` are the URLs of uploaded photos. Raises ValidationError."""
    properties = message.properties
    check_size(properties)
    fields = {name: value for name, value in fields_of(properties).items() if value}
    shown = photos(properties, images)
    if not fields.get("content") and not shown:
        raise ValidationError("is required unless there is a photo", "content")
    content = fields.get("content", "")
    fields.setdefault("title", title_of(content) or now[:10])
    return dated(fields | {"content": with_photos(content, shown)}, default_status, now)


def dated(fields: dict[str, Any], status: str, now: str) -> dict[str, Any]:
    """Set the status of a post by its time. `status` is the default."""
    return fields | {"status": status_meant(fields.get("status") or status, fields.get("published_at"), now)}


def photos(properties: Properties, images: list[str]) -> list[str]:
    """Return Markdown for every photo in the properties and then for every image. Raises ValidationError."""
    pairs: list[tuple[str, str]] = []
    for value in properties.get("photo", []):
        alt = value.get("alt") if isinstance(value, dict) else ""
        if url := text(value, "photo"):
            pairs.append((url, text(alt, "photo.alt") if isinstance(alt, str) else ""))
    pairs += [(url, "") for url in images]
    alts = [text(value, "mp-photo-alt") for value in properties.get("mp-photo-alt", [])]
    markdown = []
    for index, (url, alt) in enumerate(pairs):
        url = url.strip().translate(NOT_IN_URL)
        if not re.fullmatch(URL, url):
            raise ValidationError("must be absolute http or https URLs", "photo")
        label = " ".join((alt or "".join(alts[index : index + 1])).split())
        markdown.append(image_of(label, url))
    return markdown


def with_photos(content: str, markdown: list[str]) -> str:
    """Append every photo to the content as a paragraph."""
    if not markdown:
        return content
    before = content if content.endswith("\n") or not content else f"{content}\n"
    return (f"{before}\n" if before else "") + "\n\n".join(markdown) + "\n"


def changes_of(update: Update, old: Mapping[str, Any], now: str) -> dict[str, Any]:
    """Return the changes that an update makes to a post. The value "" clears a field. Raises ValidationError."""
    if "photo" in update.replaced:
        raise ValidationError("photos can be added, but not replaced: they are part of the content", "photo")
    changes = fields_of(update.replaced)
    changes |= _added(update.added, {**old, **changes})
    changes |= _deleted(update.deleted, old, changes.get("tags", old["tags"]))
    if {"status", "published_at"} & changes.keys():
        changes = dated(changes, old["status"], now)
    return changes


def _added(added: Properties, post: Mapping[str, Any]) -> dict[str, Any]:
    for name, field in FIELDS_BY_PROPERTY.items():
        if name in added and post.get(field):
            raise ValidationError("already has a value; replace it", name)
    changes = fields_of(added)
    if "tags" in changes:
        changes["tags"] = [*post["tags"], *changes["tags"]]
    if shown := photos(added, []):
        changes["content"] = with_photos(changes.get("content", post["content"]), shown)
    return changes


def _deleted(deleted: Mapping[str, list[Any] | None], old: Mapping[str, Any], tags: list[str]) -> dict[str, Any]:
    """Return the changes from an update's `delete` part. `tags` are the tags after its other parts were applied."""
    changes: dict[str, Any] = {}
    for name, values in deleted.items():
        if name == "category":
            gone = {fold(value) for value in values or () if isinstance(value, str)}
            changes["tags"] = [tag for tag in tags if values is not None and fold(tag) not in gone]
        elif name in (*FIELDS_BY_PROPERTY, "photo") and name not in CLEARED:
            raise ValidationError("cannot be deleted", name)
        elif name in CLEARED and (values is None or old.get(FIELDS_BY_PROPERTY[name]) in values):
            changes[FIELDS_BY_PROPERTY[name]] = ""
    return changes


def update_of(body: Mapping[str, Any]) -> Update:
    """Return the update in a JSON body, without empty values. Raises ValidationError."""
    parts = replaced, added, deleted = [body.get(name, {}) for name in ("replace", "add", "delete")]
    if isinstance(deleted, list) and all(isinstance(name, str) for name in deleted):
        parts, deleted = [replaced, added], dict.fromkeys(deleted)
    if not all(isinstance(part, dict) for part in parts):
        raise ValidationError("must be objects of properties; `delete` can be a list of names", "replace, add, delete")
    if not all(isinstance(values, list) for part in parts for values in part.values()):
        raise ValidationError("must have a list of values for each property", "replace, add, delete")
    for properties in (replaced, added, deleted):
        check_size(properties)
    # Replacing an optional property with no value clears it.
    cleared: dict[str, list[Any]] = {name: [] for name in (*CLEARED, "category") if name in replaced}
    return Update(cleared | without_empty(replaced), without_empty(added), deleted)


def check_size(properties: Mapping[str, list[Any] | None]) -> None:
    for name, values in properties.items():
        if values and len(values) > MAX_VALUES:
            raise ValidationError(f"must have at most {MAX_VALUES} values", name)


def properties_of(post: Mapping[str, Any], url: str) -> dict[str, list[Any]]:
    """Convert a post to the properties of an entry. The content is kept as Markdown."""
    properties = {name: [post[field]] for name, field in FIELDS_BY_PROPERTY.items() if post.get(field)}
    return properties | ({"category": post["tags"]} if post["tags"] else {}) | {"url": [url]}


def title_of(content: str) -> str:
    """Return the first heading in the content, or its first visible line, without Markdown. Cut between words."""
    beginning = (line[:MAX_LINE] for line in content[:MAX_BEGINNING].splitlines())
    lines = (MARKS.sub(lambda match: match[2] or "", line).strip() for line in beginning)
    title = heading(content)
    line = title or next((line for line in lines if VISIBLE.search(line)), "")
    line = " ".join(CONTROL_OR_BREAK.sub(" ", line).split())
    longest = MAX_TITLE if title else CUT_TITLE
    return line if len(line) <= longest else line[: longest + 1].rpartition(" ")[0].strip() or line[:longest]
