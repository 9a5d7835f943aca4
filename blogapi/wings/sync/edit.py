"""Edit a Markdown file to match a post, changing only the lines that differ."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

from blogapi.documents import INPUT_FIELDS, STAYING
from blogapi.markdown.files import MarkdownFile, block, render
from blogapi.markdown.front_matter import split
from blogapi.markdown.programs import NAMES_OF_FIELDS

MAX_DIFF_LINES = 5000  # maximum number of lines in both versions together; a comparison takes quadratic time
QUOTED_YAML = r"""(?:"(?:[^"\\]|\\.)*+"|'[^']*+')"""
# A line of YAML, and the comment at its end. The value is quoted text, a list or a mapping in brackets, or plain.
COMMENTED = re.compile(
    rf"""((?:[\s-]*+{QUOTED_YAML}:(?=\s|$)|[^:#"']*+:(?=\s|$)|\s*+-(?=\s|$))?+"""
    rf"""(?:\s+(?:{QUOTED_YAML}++|[\[{{](?:{QUOTED_YAML}|[^\s"']|\s++(?!\#))*+)|(?!\s*+\#|\s+["'\[{{])(?:\S|\s++(?!\#))*+)?)"""
    r"(\s*+\#.*)?"
)
OPENED = re.compile(r"[^:]*:\s*(?:#.*)?")  # the line of a name with its value on the lines below


def with_content(data: bytes, old: str, new: str, linked: Callable[[str], str]) -> bytes:
    """Return a file with `new` as its content. `old` is its current content, with the image URLs of the post.

    Unchanged lines and the style of line endings are kept. In changed lines, `linked` replaces the URLs of images.
    """
    content = split(data, skip_blank=True)[2]
    written, before = content.split("\n"), old.replace("\r\n", "\n").split("\n")
    after = new.replace("\r\n", "\n").split("\n")
    end = "\r" if written[0].endswith("\r") else ""
    lines = [linked(line) + end for line in after[:-1]] + [linked(after[-1])]
    if len(written) == len(before) and len(before) + len(after) <= MAX_DIFF_LINES:
        for first, second, count in SequenceMatcher(None, before, after).get_matching_blocks():
            for offset in range(count):
                line = written[first + offset].removesuffix("\r")
                lines[second + offset] = line + (end if second + offset < len(after) - 1 else "")
    return data[: len(data) - len(content.encode())] + "\n".join(lines).encode()


def with_fields(
    data: bytes, file: MarkdownFile, fields: Mapping[str, Any], post: Mapping[str, Any], lacking: Collection[str]
) -> bytes:
    """Return a file with `fields` in its front matter edited to match a post, and the fields in `lacking` added.

    Editing is best-effort and may leave the file unchanged, so the caller must check the result.
    """
    if not split(data, skip_blank=True)[0]:
        data = b"---\n---\n\n" + data
    marks, text, _, _ = split(data, skip_blank=True)
    start = data.index(b"\n") + 1 if marks == b"---" else 0
    if not start or not data.startswith(text.encode(), start):  # There may be white space before the front matter.
        return data
    changes: dict[str, str] = {}  # the new lines for each name; "" removes the name
    for field in INPUT_FIELDS:
        old, new = fields.get(field) or None, post.get(field) or None
        is_kept = old == new or (old is None and field in STAYING)
        if field == "content" or (is_kept and not (field in lacking and field not in file.sources)):
            continue
        if field == "params":
            changes |= _params(file, old or {}, new or {}, text)
        elif (name := file.sources.get(field, field)) in ("draft", "published"):
            changes |= _flag(name, str(new))
        else:
            if field == "tags":  # Write all tags under one name.
                changes |= dict.fromkeys({*NAMES_OF_FIELDS["tags"]} & file.lines.keys(), "")
            changes[name] = _lines(field, new, ["", "", *text.split("\n")][file.lines.get(name, 0)])
    return data[:start] + _replace(text, file.lines, changes).encode() + data[start + len(text.encode()) :]


def _lines(field: str, value: Any, old: str = "") -> str:
    """Return new lines for a field, or "" if it is empty. A list of tags below the line `old` stays a list."""
    if field == "tags" and value and OPENED.fullmatch(old):
        return block({field: value})
    return render({field: value, "content": ""}).decode().removeprefix("---\n").removesuffix("---\n\n")


def _flag(name: str, status: str) -> dict[str, str]:
    if status == "archived":
        return {name: "", "status": _lines("status", status)}
    return {name: f"{name}: {str((status == 'draft') == (name == 'draft')).lower()}\n"}


def _params(file: MarkdownFile, old: Mapping[str, Any], new: Mapping[str, Any], text: str) -> dict[str, str]:
    """Return new lines for params at the top level, and for the mapping `params` if the file has one."""
    has_own = "params" in file.lines
    values = {name: (old.get(name), new.get(name)) for name in {**old, **new} if name in file.others or not has_own}
    if has_own:
        before, after = ({name: value for name, value in params.items() if name not in values} for params in (old, new))
        values["params"] = before, after
    return _values(text.split("\n")[:-1], file.lines, values)


def _values(lines: Sequence[str], places: Mapping[str, int], values: Mapping[str, tuple[Any, Any]]) -> dict[str, str]:
    """Return new lines for each name whose old and new values differ."""
    changed = {name: pair for name, pair in values.items() if pair[0] != pair[1]}
    return {name: _value(lines[_span(lines, places, name)], name, *pair) for name, pair in changed.items()}


def _value(written: Sequence[str], name: str, old: Any, new: Any) -> str:
    """Return new lines for a name. Its current lines are `written`, with the value `old`. Keep comments in mappings."""
    fresh = block({name: new}) if new not in (None, {}) else ""
    first, *below = [line.removesuffix("\r") for line in written] or [""]
    indent = next(
        (line[: len(line) - len(line.lstrip())] for line in below if line.strip() and line.lstrip()[0] != "#"), ""
    )
    inner = [line.removeprefix(indent) for line in below]
    keys = {match[1]: line for line, text in enumerate(inner, 2) if (match := re.match(r"([\w.-]+):(?: |$)", text))}
    are_mappings = isinstance(old, Mapping) and isinstance(new, Mapping) and bool(fresh)
    if not (are_mappings and indent and keys.keys() == old.keys() and OPENED.fullmatch(first)):
        return fresh
    changes = _values(inner, keys, {key: (old.get(key), new.get(key)) for key in {**old, **new}})
    replaced = _replace("".join(f"{line}\n" for line in inner), keys, changes)
    return f"{name}:\n" + re.sub("^(?=.)", indent, replaced, flags=re.MULTILINE)


def _span(lines: Sequence[str], places: Mapping[str, int], name: str) -> slice:
    """Return the slice of a name's lines, without the comments and empty lines after them."""
    if name not in places:
        return slice(0)
    start = places[name] - 2  # The front matter begins in the second line of the file.
    stop = min((other - 2 for other in places.values() if other > places[name]), default=len(lines))
    while stop - 1 > start and (not lines[stop - 1].strip() or lines[stop - 1].lstrip().startswith("#")):
        stop -= 1
    return slice(start, stop)


def _replace(text: str, places: Mapping[str, int], changes: Mapping[str, str]) -> str:
    """Replace the lines of each changed name that is in `places`, and append the other changed names."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split("\n")[:-1]
    for name in sorted(changes.keys() & places.keys(), key=places.__getitem__, reverse=True):
        span = _span(lines, places, name)
        old = [line.removesuffix("\r") for line in lines[span]]
        lines[span] = [line + end[:-1] for line in _with_comments(old, changes[name].split("\n")[:-1])]
    added = [new.replace("\n", end) for name, new in changes.items() if name not in places]
    return "".join(f"{line}\n" for line in lines) + "".join(added)


def _with_comments(old: Sequence[str], new: list[str]) -> list[str]:
    """Return the new lines of a name in the style of the old ones. Keep the comments on the items that remain."""
    if not new:
        return []
    # Keep the spelling of the name.
    first = f"{old[0].partition(':')[0]}:{new[0].partition(':')[2]}{_split_comment(old[0])[1]}"
    items = [line for line in old[1:] if line.lstrip().startswith("-")]
    if not (items and OPENED.fullmatch(old[0]) and new[1:] and new[1].startswith("  -")):
        return [first, *new[1:]]
    kept: dict[str, tuple[list[str], str]] = {}  # the comments above and after an item
    above: list[str] = []
    for code, comment in map(_split_comment, old[1:]):
        if code.strip():
            kept.setdefault(code.strip(), (above, comment))
            above = []
        else:
            above = [*above, code + comment]
    indent = items[0][: -len(items[0].lstrip())]
    lines = [first]
    for line in new[1:]:
        before, comment = kept.pop(line.strip(), ([], ""))
        lines += [*before, indent + line.removeprefix("  ") + comment]
    return lines


def _split_comment(line: str) -> tuple[str, str]:
    """Return a line of YAML without the comment at its end, and the comment."""
    match = COMMENTED.fullmatch(line)
    return (match[1], match[2] or "") if match else (line, "")
