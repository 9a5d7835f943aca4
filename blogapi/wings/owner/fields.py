"""Convert a post to the fields of its form and back, and compare two forms."""

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from time import monotonic
from typing import Any

from flask import g
from markupsafe import Markup
from marshmallow import ValidationError

from blogapi import documents
from blogapi.api.request import request
from blogapi.markdown.files import block, read_block
from blogapi.markdown.front_matter import MarkdownError
from blogapi.posts.schemas import PostInputSchema
from blogapi.posts.storage import Fields
from blogapi.search import index
from blogapi.text import Lines, changed_lines, equal_start, with_line_feeds
from blogapi.wings.owner.frame import local_time
from blogapi.wings.proposals.storage import conflicts

FORM_FIELDS = [name for name in documents.INPUT_FIELDS if name != "former_slugs"]  # The form has no former slugs.
LABELS = {name: field.label or name.replace("_", " ").capitalize() for name, field in documents.FIELDS.items()}
TEXTS = [name for name in FORM_FIELDS if documents.FIELDS[name].kind == "text"]
# optional fields that a post's form and page show one after another, without special markup
MORE_FIELDS = {
    name: field
    for name, field in documents.FIELDS.items()
    if field.presence == "optional" and field.kind in ("line", "text", "url") and name != "cover_image"
}
NEW = dict.fromkeys(FORM_FIELDS, "") | {"status": "draft"}  # the form of a new post
BEGINNING, QUOTED = 60, 45  # number of characters that a list shows of a text, and of a change
MAX_EQUAL, MARKING_SECONDS = 5000, 0.1  # limits on the pairs of equal words in two lines, and on the time for all lines
MAX_SPLIT = 200_000  # do not count the changed words in longer texts, because other requests wait during the count
Form = Mapping[str, str]  # the fields of a form
post_schema = PostInputSchema()


def as_typed(post: Fields) -> dict[str, str]:
    """Return the values that a post's form shows."""
    typed = {name: post.get(name) or "" for name in FORM_FIELDS}
    typed |= {name: with_line_feeds(typed[name]) for name in TEXTS}
    return typed | {"tags": as_line(post["tags"]), "params": block(post.get("params") or {})}


def base_of(typed: Form) -> str:
    """Return the name and hash of each field in a form."""
    return " ".join(f"{name}:{_hash(name, typed)}" for name in FORM_FIELDS)


def _hash(name: str, typed: Form) -> str:
    return documents.hash_of(typed.get(name, "").encode())


def follow(typed: MutableMapping[str, str], post: Form) -> list[str]:
    """Update the unedited fields of a form from the current post; return the fields that were changed in both."""
    base = dict(pair.split(":", 1) for pair in typed.get("base", "").split() if ":" in pair)
    # An empty slug does not count as edited, and stays empty, because saving the post fills it in.
    names = [name for name in FORM_FIELDS if name in typed and (typed[name] or name != "slug")]
    mine = {name: _hash(name, typed) for name in names}
    for name in FORM_FIELDS:
        if name not in typed or (name in mine and mine[name] == base.get(name)):
            typed[name] = post[name]
            base[name] = _hash(name, post)
    typed["base"] = " ".join(map(":".join, base.items()))
    return conflicts(base, mine, {name: _hash(name, post) for name in FORM_FIELDS})


def as_line(tags: Iterable[str]) -> str:
    """Join tags with commas, and quote those that contain a comma or a quote."""
    return ", ".join('"{}"'.format(tag.replace('"', '""')) if {*tag} & {*',"'} else tag for tag in tags)


def from_line(line: str) -> list[str]:
    """Return the tags in a string in which commas or line breaks separate them."""
    try:
        rows = [*csv.reader(line.split("\n"), skipinitialspace=True)]
    except csv.Error:
        raise ValueError(f"must be tags of 1 to {documents.MAX_TAG} characters") from None
    return [name.strip() for row in rows for name in row if name.strip()]


def changed_fields(old: Form, new: Form, names: Iterable[str] = FORM_FIELDS) -> dict[str, Lines]:
    """Return the changed lines of each field that differs between two forms. The comparison runs in a thread."""
    old, new = ({**form, "published_at": local_time(form["published_at"]).replace("T", " ")} for form in (old, new))
    compare, changed = request.database.compute_in_thread, _changed(old, new, names)
    return compare(request.client, lambda: {name: changed_lines(old[name], new[name]) for name in changed})


def _changed(old: Form, new: Form, names: Iterable[str]) -> list[str]:
    return [name for name in names if old[name] != new[name] and (new[name] or name != "slug")]


def differing(old: Form, new: Form) -> dict[str, str]:
    """Return the fields that differ, some with a note such as " (1 word added)" or " (draft → archived)", as HTML."""
    changes = dict.fromkeys(_changed(old, new, FORM_FIELDS), "")
    if "status" in changes:
        changes["status"] = f" ({old['status']} → {new['status']})"
    if "content" in changes and len(old["content"]) + len(new["content"]) <= MAX_SPLIT:
        before, after = (Counter(typed["content"].split()) for typed in (old, new))
        totals = {"added": (after - before).total(), "removed": (before - after).total()}
        words = [f"{total} word{'s' if total > 1 else ''} {what}" for what, total in totals.items() if total]
        changes["content"] = f" ({', '.join(words)})" if words else ""
        changes["content"] += largest_addition(changed_lines(old["content"], new["content"]))
    return changes


def largest_addition(lines: Lines) -> Markup:
    """Quote the added line with the most new words, starting shortly before the first difference, and mark them."""
    removed = [line for kind, line in lines if kind == "-"]
    known, mark = {word for line in removed for word in line.split()}, Markup("<mark>{}</mark>").format
    added = max([line for kind, line in lines if kind == "+"] or [""], key=lambda line: len({*line.split()} - known))
    same = max((equal_start(line, added) for line in removed), default=0)
    start = added.rfind(" ", 0, max(same - QUOTED // 3, 0)) + 1
    quoted, rest = added[start : start + QUOTED + 1], ""
    if len(quoted) > QUOTED:
        quoted, rest = quoted.rsplit(" ", 1)[0], "…"
    words = [mark(word) if known and word not in known else word for word in quoted.split(" ")]
    return Markup(" “{}{}{}”").format("…" if start else "", Markup(" ").join(words), rest) if added else Markup()


def load(old: Mapping[str, Any] = {}) -> dict[str, Any]:
    """Load the fields entered in the form of a new or `old` post. Raises ValidationError with all bad fields."""
    typed, wrong = typed_fields(old)
    try:
        fields = post_schema.load(typed)
    except ValidationError as error:
        wrong = error.normalized_messages() | wrong
    if wrong:
        raise ValidationError(wrong)
    index.prepare(request.database, fields.get("content", ""))
    return fields


def typed_fields(old: Mapping[str, Any] = {}) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Parse the fields entered in the form; return the valid ones, and why the others are invalid.

    Unedited text keeps the line breaks of the `old` post. Edited text gets CRLF if the old text had it.
    """
    typed: dict[str, Any] = {name: g.form.get(name, "") for name in FORM_FIELDS}
    typed["status"] = g.form.get("to") or typed["status"]  # Buttons such as *Publish now* send a status.
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
        # An unedited date keeps its time in UTC, because a local time is ambiguous when the clocks go back.
        before = old.get("published_at", "")
        typed["published_at"] = before if local_time(time) == local_time(before) else time
    return typed, wrong


def marked(lines: Lines) -> Lines:
    """Pair removed lines with an equal number of added lines, and mark the words that differ in each pair."""
    until = monotonic() + MARKING_SECONDS
    runs = [(kind, [line for _, line in run]) for kind, run in groupby(lines, key=lambda line: line[0])]
    for (old_kind, old), (new_kind, new) in pairwise(runs):
        if (old_kind, new_kind, len(old)) == ("-", "+", len(new)):
            old[:], new[:] = zip(*(_mark_words(*pair, until) for pair in zip(old, new, strict=True)), strict=True)
    return [(kind, line) for kind, run in runs for line in run]


def _mark_words(old: str, new: str, until: float) -> list[str]:
    """Mark the words that differ in two lines, unless many words recur, because comparing those takes cubic time."""
    before, after = old.split(" "), new.split(" ")
    totals = Counter(after)
    if not 0 < sum(totals[word] for word in before) <= MAX_EQUAL or monotonic() > until:
        return [old, new]
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    lines: list[str] = []
    for side, words in enumerate((before, after)):
        kept = {at for block in blocks for at in range(block[side], block[side] + block.size)}
        runs = groupby(range(len(words)), key=kept.__contains__)
        parts = ((Markup("{}" if is_kept else "<mark>{}</mark>"), [words[at] for at in run]) for is_kept, run in runs)
        lines.append(Markup(" ").join(part.format(" ".join(its_words)) for part, its_words in parts))
    return lines
