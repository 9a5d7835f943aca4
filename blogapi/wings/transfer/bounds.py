"""Shorten what is too long in an imported post, so that the post is not refused."""

import json
from typing import Any

from blogapi.documents import FIELDS, MAX_TAG, MAX_TAGS, SHORT_TEXTS
from blogapi.posts.params import ParamsError, check_params, is_name
from blogapi.text import fold
from blogapi.wings.markdown.files import MarkdownFile
from blogapi.wings.markdown.front_matter import shortened
from blogapi.wings.transfer.notes import Note, NoteDetails


def shorten(fields: dict[str, Any], file: MarkdownFile) -> dict[Note, NoteDetails]:
    """Bring the fields of a post within their bounds; return notes on what was cut."""
    notes: dict[Note, NoteDetails] = {}
    params = fields.get("params", {})
    for name in SHORT_TEXTS:
        longest = FIELDS[name].max_length
        if len(text := fields.get(name, "")) > longest:
            fields[name] = text[: longest + 1].rpartition(" ")[0].rstrip() or text[:longest]
            params = params | {name: params.get(name, text)}
            notes.setdefault(Note.LONG_TEXTS, file.line_of(name))
    tags: dict[str, str] = {}
    for tag in fields.get("tags", ()):
        tags.setdefault(fold(tag[:MAX_TAG]), tag[:MAX_TAG])
    if len(tags) < len(fields.get("tags", ())):  # A repeated tag counts once.
        fields["tags"] = [*tags.values()]
    if len(tags) > MAX_TAGS or any(len(tag) > MAX_TAG for tag in fields.get("tags", ())):
        fields["tags"] = [*tags.values()][:MAX_TAGS]
        notes[Note.MANY_TAGS] = file.line_of("tags")
    left_out: dict[str, None] = {}
    if params := _fitting({name: _with_valid_names(each, name, left_out) for name, each in params.items()}, left_out):
        fields["params"] = params
    else:
        fields.pop("params", None)
    if left_out:
        notes[Note.LARGE_PARAMS] = file.line_of(next(iter(left_out))), ", ".join(map(shortened, left_out))
    return notes


def _with_valid_names(value: Any, top: str, left_out: dict[str, None]) -> Any:
    """Return a value without parts whose names are too long or invisible; if any, add `top` to `left_out`."""
    if isinstance(value, list):
        return [_with_valid_names(each, top, left_out) for each in value]
    if not isinstance(value, dict):
        return value
    valid = {name: _with_valid_names(each, top, left_out) for name, each in value.items() if is_name(name)}
    left_out |= {top: None} if len(valid) < len(value) else {}
    return valid


def _fitting(params: dict[str, Any], left_out: dict[str, None]) -> dict[str, Any]:
    """Return params without invalid names, and without the largest values that do not fit."""
    left_out |= {name: None for name in params if not is_name(name)}
    params = {name: value for name, value in params.items() if is_name(name)}
    for name in sorted(params, key=lambda name: len(json.dumps(params[name])), reverse=True):
        try:
            check_params(params)
            break
        except ParamsError as error:
            wrong = next((each for each in params if error.place.startswith(f".{each}")), name)
            left_out[wrong] = None
            params = {other: value for other, value in params.items() if other != wrong}
    return params
