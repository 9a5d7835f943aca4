"""Edit a Markdown file to match a post, changing only the lines that differ."""

from collections.abc import Callable, Mapping
from difflib import SequenceMatcher
from typing import Any

from blogapi.documents import INPUT_FIELDS
from blogapi.wings.markdown.files import MarkdownFile, block, render
from blogapi.wings.markdown.front_matter import split
from blogapi.wings.markdown.programs import NAMES

MAX_LINES = 5000  # contents with more lines in all are not compared line by line
# A post keeps these fields if its file does not contain them.
STAYS = ("slug", "status", "published_at", "former_slugs")


def with_content(data: bytes, old: str, new: str, linked: Callable[[str], str]) -> bytes:
    """Return a file with the content `new`. `old` is its present content, with the image addresses of the post.

    Unchanged lines stay as they are in the file. In the others, `linked` replaces the addresses of images. The line
    endings keep their style.
    """
    content = split(data, skip_blank=True)[2]
    written, before = content.split("\n"), old.replace("\r\n", "\n").split("\n")
    after = new.replace("\r\n", "\n").split("\n")
    end = "\r" if written[0].endswith("\r") else ""
    lines = [linked(line) + end for line in after[:-1]] + [linked(after[-1])]
    if len(written) == len(before) and len(before) + len(after) <= MAX_LINES:
        for first, there, count in SequenceMatcher(None, before, after).get_matching_blocks():
            for offset in range(count):
                line = written[first + offset].removesuffix("\r")
                lines[there + offset] = line + (end if there + offset < len(after) - 1 else "")
    return data[: len(data) - len(content.encode())] + "\n".join(lines).encode()


def with_fields(data: bytes, file: MarkdownFile, said: Mapping[str, Any], post: Mapping[str, Any]) -> bytes:
    """Return a file with its front matter, whose fields are `said`, changed to match a post.

    This is best-effort, and may leave the file as it was: the caller must check the result.
    """
    marks, text, _, _ = split(data, skip_blank=True)
    start = data.index(b"\n") + 1 if marks == b"---" else 0
    stop = start + len(text.encode())
    if not start or data[start:stop] != text.encode():  # White space comes before it.
        return data
    changes: dict[str, str] = {}  # the new lines for each name; "" removes it
    for field in INPUT_FIELDS:
        old, new = said.get(field) or None, post.get(field) or None
        if old == new or field == "content" or (old is None and field in STAYS):
            continue
        if field == "params":
            changes |= _params(file, old or {}, new or {})
        elif (name := file.sources.get(field, field)) in ("draft", "published"):
            changes |= _flag(name, str(new))
        else:
            if field == "tags":  # All tags go under one name.
                changes |= dict.fromkeys({*NAMES["tags"]} & file.lines.keys(), "")
            changes[name] = _lines(field, new)
    return data[:start] + _replaced(text, file.lines, changes).encode() + data[stop:]


def _lines(field: str, value: Any) -> str:
    """Return the lines of a field in a new file; none if it has no value."""
    return render({field: value, "content": ""}).decode().removeprefix("---\n").removesuffix("---\n\n")


def _flag(name: str, status: str) -> dict[str, str]:
    if status == "archived":
        return {name: "", "status": _lines("status", status)}
    return {name: f"{name}: {str((status == 'draft') == (name == 'draft')).lower()}\n"}


def _params(file: MarkdownFile, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """Return the new lines of names at the top level and, if the file has it, of the mapping `params`."""
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    lines = {name: block({name: new[name]}) if name in new else "" for name in changed}
    if "params" not in file.lines:
        return lines
    own = {name: value for name, value in new.items() if name not in file.others}
    return {name: lines[name] for name in changed if name in file.others} | {"params": _lines("params", own)}


def _replaced(text: str, places: Mapping[str, int], changes: Mapping[str, str]) -> str:
    """Replace the lines of names in front matter, which begin at `places` in the file; append new names."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split("\n")[:-1]
    starts = sorted({*places.values()})
    for name in sorted(changes.keys() & places.keys(), key=places.__getitem__, reverse=True):
        start = places[name] - 2  # The text begins in the second line.
        stop = next((other - 2 for other in starts if other > places[name]), len(lines))
        while stop - 1 > start and (not lines[stop - 1].strip() or lines[stop - 1].lstrip().startswith("#")):
            stop -= 1
        new = changes[name].replace("\n", end).split("\n")[:-1]
        if new:  # The spelling of the name stays.
            new[0] = f"{lines[start].partition(':')[0]}:{new[0].partition(':')[2]}"
        lines[start:stop] = new
    added = [new.replace("\n", end) for name, new in changes.items() if name not in places]
    return "".join(f"{line}\n" for line in lines) + "".join(added)
