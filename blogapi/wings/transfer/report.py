"""Report the results of an import, the files it skipped, and the work that remains for the user."""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO
from urllib.parse import quote, unquote

import click

from blogapi.markdown.front_matter import shown
from blogapi.text import counted
from blogapi.wings.transfer.importer import Checked, ImportResult
from blogapi.wings.transfer.items import Item, Note
from blogapi.wings.transfer.sources import Sources

EXAMPLES = 3
LISTED_IN_FULL = (Note.HIDDEN, Note.OTHER_DATES, Note.NO_DATES)  # notes that list all their posts, with the reasons
UNPAIRED = re.compile("[\ud800-\udc7f\udd00-\udfff]")  # surrogates, except those that represent undecodable bytes
CLEAR_LINE = "\r\x1b[K"  # removes a progress bar
# The names of outcomes in the summary, which scripts parse
SUMMARY = {"created": "made", "updated": "changed", "failed": "refused"}


class Report:
    """The counts and the notes of an import."""

    def __init__(self, dry_run: bool, redirects: IO[str] | None, images: Counter[str], archives: Mapping[Path, Path]):
        self.dry_run = dry_run
        self.redirects = redirects  # receives one line for each old URL
        self.images = images  # counts
        # folder -> the archive that was unpacked into it
        self.archives = {str(folder): str(path) for folder, path in archives.items() if folder != path}
        self.outcomes = Counter(created=0, updated=0, unchanged=0, failed=0)
        self.params: Counter[str] = Counter()  # by name
        self.places: defaultdict[Note, list[str]] = defaultdict(list)  # files and lines
        if redirects and not dry_run:
            redirects.write("")  # Opens the file, so that any error occurs before posts are stored.

    def print_all(self, results: Iterable[ImportResult], sources: Sources) -> int:
        """Add the results, then print the report, even after an interruption. Return the exit status."""
        try:
            for outcome, post in results:
                self.add(outcome, post)
        finally:
            self.print(sources)
        if not self.outcomes.total():
            self._say("There is nothing to import: pass Markdown files, a folder that contains some, or an export.")
        return 1 if self.outcomes["failed"] or not self.outcomes.total() else 0

    def _say(self, text: str, err: bool = True) -> None:
        """Print a line that names archives instead of the folders into which they were unpacked."""
        for folder, path in self.archives.items():
            text = text.replace(folder, path)
        say(text, err)

    def add(self, outcome: str, checked: Checked) -> None:
        """Count a result and write its redirects. Print why a post failed or, in a dry run, what would be done."""
        self.outcomes[outcome] += 1
        if not isinstance(checked, Item):
            for reason in checked:
                self._say(str(reason))
            return
        self.params.update([*checked.fields.get("params", ())])
        self.images["missing"] += len(checked.missing)
        for what, note in checked.notes.items():
            if what in (Note.NO_DATES, Note.NO_DATES_IN_EXPORTS) and outcome == "unchanged":
                continue  # An earlier import published it.
            line, names = note if isinstance(note, tuple) else (note, "")
            place = f"{checked.source}:{line}" if line else checked.source
            self.places[what].append(place + (f" has {names}" if names else ""))
        redirects = redirects_of(checked)
        if redirects and Note.OTHER_SLUGS not in checked.notes:
            self.places[Note.OLD_URLS].append(checked.source)
        if self.dry_run:
            self._say(f"{checked.source}: would be {outcome}: {_predicted(checked, outcome)}", err=False)
        elif self.redirects:
            self.redirects.writelines(redirects)

    def print(self, sources: Sources) -> None:
        """Print the counts, the skipped files, and the notes."""
        for line in (*refused_images(sources), *(() if self.outcomes.total() else sources.advice())):
            self._say(line)
        for line in self._lines(sources):
            self._say(line, err=False)

    def _lines(self, sources: Sources) -> Iterator[str]:
        yield from settings_of(sources)
        would_be = "would be " if self.dry_run else ""
        yield would_be + counted({SUMMARY.get(outcome, outcome): count for outcome, count in self.outcomes.items()})
        if self.images.total():
            yield f"images: {counted(self.images)}"
        yield from left_out(sources, "Not imported")
        if self.params:
            yield f"params: {counted(dict(self.params.most_common()))}"
        if hosts := +sources.hosts:
            yield f"On other hosts: {plural(hosts.total(), 'image')} ({counted(dict(hosts.most_common()))})."
        for note in Note:
            if places := self.places[note]:
                limit = len(places) if note in LISTED_IN_FULL else EXAMPLES
                yield f"{note.beginning} {plural(len(places), 'post')} ({examples(places, limit)}): {note.remedy}."


def say(text: str, err: bool = True) -> None:
    """Print a line in place of a progress bar."""
    if sys.stderr.isatty():
        click.echo(CLEAR_LINE, err=True, nl=False)
    click.echo(shown(text), err=err)


def left_out(sources: Sources, beginning: str) -> Iterator[str]:
    """Yield a line about the skipped items, and a line about each kind of file or folder that was not read."""
    if kinds := +sources.left_out:
        yield f"{beginning}: {listed(kinds)}{'; --pages imports pages' if 'page' in kinds else ''}."
    for kind, files in sources.unread.items():
        yield f"{beginning}: {plural(len(files), kind)} ({examples(files)})."


def settings_of(sources: Sources) -> Iterator[str]:
    """Yield a line about each recognized program, and about each configuration that was not read."""
    yield from (f"Recognized: {program}." for program in sources.recognized)
    yield from (f"Not read: {settings}." for settings in sources.unread_settings)


def examples(names: Sequence[str], limit: int = EXAMPLES) -> str:
    """Join the first few names with commas."""
    return ", ".join((*names[:limit], *(["…"] if len(names) > limit else [])))


def plural(count: int, noun: str) -> str:
    """Return a count with a noun. If necessary, make the first word of the noun plural."""
    first, *others = noun.split(" ")
    return " ".join([str(count), first if count == 1 or first.endswith("s") else f"{first}s", *others])


def listed(counts: Mapping[str, int]) -> str:
    """Return counted nouns as a list for a sentence, such as `2 pages and 1 comment`."""
    *others, last = [plural(count, noun) for noun, count in counts.items()]
    return f"{', '.join(others)} and {last}" if others else last


def refused_images(sources: Sources) -> Iterator[str]:
    """Yield a line for each reason to refuse images, with some of the refused files."""
    files = defaultdict(list)
    for file, reason in sources.images.refused.items() if sources.images else ():
        files[reason].append(file)
    for reason, paths in files.items():
        others = f" and {len(paths) - EXAMPLES} more" if len(paths) > EXAMPLES else ""
        yield f"{', '.join(paths[:EXAMPLES])}{others}: {reason}"


def redirects_of(item: Item) -> list[str]:
    """Return a redirect for each old URL of a post that differs from its slug. Keep bytes that are not UTF-8."""
    slug, bytes_kept = item.fields["slug"], "surrogateescape"
    paths = (unquote(UNPAIRED.sub("\ufffd", path), errors=bytes_kept) for path in item.old_paths)
    quoted = dict.fromkeys(quote(path, errors=bytes_kept).lstrip("/") for path in paths)
    return [f"/{path} /{slug}\n" for path in quoted if path.rstrip("/") not in ("", slug)]


def _predicted(item: Item, outcome: str) -> str:
    fields = item.fields
    status = fields.get("status", "draft" if outcome == "created" else "")
    parts = [fields["slug"], f"{status} {fields.get('published_at', '')}".strip()]
    named = {"tags": fields["tags"], "params": fields.get("params")}
    parts += [f"{what} {', '.join(names)}" for what, names in named.items() if names]
    parts += [f"images {len(item.images)}"] if item.images else []
    lines = {what: note[0] if isinstance(note, tuple) else note for what, note in item.notes.items()}
    parts += [f"{what} on line {line}" if line else what for what, line in lines.items()]
    return "; ".join(filter(None, parts))
