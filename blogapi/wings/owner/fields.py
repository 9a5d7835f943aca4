"""Conversion between the fields of a post and the texts in its form."""

import csv
from collections.abc import Iterable, Mapping, MutableMapping
from typing import Any

from flask import g
from marshmallow import Schema, ValidationError

from blogapi import documents
from blogapi.api.request import request
from blogapi.documents import FIELDS, etag_of, hash_of
from blogapi.wings.markdown.files import block, read_block
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.owner.diff import changed_lines
from blogapi.wings.owner.frame import local_time, utc_time
from blogapi.wings.proposals.storage import conflicts
from blogapi.wings.search import index

FORM_FIELDS = [name for name in documents.INPUT_FIELDS if name != "former_slugs"]  # These are only shown.
LABELS = {name: field.label or name.replace("_", " ").capitalize() for name, field in FIELDS.items()}
TEXTS = [name for name in FORM_FIELDS if FIELDS[name].kind == "text"]
# Fields that the form and the page of a post show without a place of their own
MORE_FIELDS = {
    name: field
    for name, field in FIELDS.items()
    if field.presence == "optional" and field.kind in ("line", "text", "url") and name != "cover_image"
}
NEW = dict.fromkeys(FORM_FIELDS, "") | {"status": "draft", "etag": ""}  # the form of a new post


def as_typed(document: bytes) -> dict[str, str]:
    """Return the fields of a post as its form shows them, its entity tag, and the hashes of the fields as `base`."""
    post = documents.load(document)
    typed = {name: post.get(name, "") for name in FORM_FIELDS} | {
        **{name: with_line_feeds(post.get(name, "")) for name in TEXTS},
        **{"tags": as_line(post["tags"]), "params": block(post.get("params", {}))},
    }
    return typed | {"etag": etag_of(document), "base": base_of(typed)}


def base_of(typed: Mapping[str, str]) -> str:
    """Return the names of the fields of a form, each with its hash."""
    return " ".join(f"{name}:{_hash(name, typed)}" for name in FORM_FIELDS)


def _hash(name: str, typed: Mapping[str, str]) -> str:
    value = typed.get(name, "")
    return hash_of((utc_time(value) if name == "published_at" else value).encode())


def follow(typed: MutableMapping[str, str], post: Mapping[str, str]) -> list[str]:
    """Update the unedited fields of a form from the current post; return the fields changed on both sides."""
    base = dict(each.split(":", 1) for each in typed.get("base", "").split() if ":" in each)
    mine = {name: _hash(name, typed) for name in FORM_FIELDS if name in typed}
    if not typed.get("slug"):  # It is chosen when the post is saved.
        mine.pop("slug", None)
    for name in FORM_FIELDS:
        if name not in mine or mine[name] == base.get(name):
            typed[name] = post[name]
    return conflicts(base, mine, {name: _hash(name, post) for name in FORM_FIELDS})


def as_line(tags: Iterable[str]) -> str:
    """Join tags with commas; put a tag that contains a comma or a quote in quotes."""
    return ", ".join('"{}"'.format(tag.replace('"', '""')) if {*tag} & {*',"'} else tag for tag in tags)


def from_line(line: str) -> list[str]:
    """Return the tags in one or several lines."""
    try:
        rows = [*csv.reader(line.split("\n"), skipinitialspace=True)]
    except csv.Error:
        raise ValueError(f"must be tags of 1 to {documents.MAX_TAG} characters") from None
    return [name.strip() for row in rows for name in row if name.strip()]


def with_line_feeds(text: str) -> str:
    """Return a string with LF for each line break, as browsers show it in a form."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def changed_fields(
    names: Iterable[str], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, list[tuple[str, str]]]:
    """Return the lines of some fields that differ between two forms. Runs in the background: it can take long."""
    dates = (local_time(utc_time(form["published_at"])).replace("T", " ") for form in (before, after))
    old, new = ({**form, "published_at": date} for form, date in zip((before, after), dates, strict=True))
    differing = [name for name in names if old[name] != new[name]]
    return request.database.compute_in_thread(
        request.client, lambda: {name: changed_lines(old[name], new[name]) for name in differing}
    )


def load(schema: Schema, typed: dict[str, Any], wrong: dict[str, list[str]]) -> dict[str, Any]:
    """Load the typed fields. Raises ValidationError for all invalid fields, even unreadable ones."""
    try:
        fields = schema.load(typed)
    except ValidationError as error:
        raise ValidationError({**error.normalized_messages(), **wrong}) from None
    if wrong:
        raise ValidationError(wrong)
    index.prepare(request.database, fields.get("content", ""))
    return fields


def typed_fields(old: Mapping[str, Any] = {}) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the typed fields of a post, as in JSON, and the reasons why others cannot be read.

    Browsers send every line break as CRLF. An untouched text stays as it was in the `old` post; a changed one gets CRLF
    if the old one had it.
    """
    typed: dict[str, Any] = {name: g.form.get(name, "") for name in FORM_FIELDS}
    typed["status"] = g.form.get("to") or typed["status"]  # A button can choose it.
    for name in TEXTS:
        before = old.get(name, "")
        if typed[name] == with_line_feeds(before):
            typed[name] = before
        elif "\r\n" in before:
            typed[name] = typed[name].replace("\n", "\r\n")
    wrong: dict[str, list[str]] = {}
    for name, read in (("tags", from_line), ("params", read_block)):
        try:
            typed[name] = read(typed[name])
        except (MarkdownError, ValueError) as error:
            wrong[name] = [str(error)]
            del typed[name]
    if time := typed.pop("published_at"):
        before = old.get("published_at", "")
        is_same = not time.endswith("Z") and f"{time}:00"[:19] == local_time(before)  # Browsers leave out seconds of 0.
        typed["published_at"] = before if is_same else utc_time(time)
    return typed, wrong
