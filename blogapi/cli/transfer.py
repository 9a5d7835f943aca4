"""The commands that read or write many posts: import, export, undo."""

import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from urllib.parse import quote, unquote

import click
from marshmallow import ValidationError

from blogapi.cli.commands import opened, with_progress
from blogapi.config import Config
from blogapi.files.front_matter import rfc3339_of, shown
from blogapi.files.markdown import export
from blogapi.files.sources import Item, Refused, Sources
from blogapi.post import URL, PutPostSchema, sentences
from blogapi.storage import history, posts
from blogapi.storage import pages as storage_pages
from blogapi.storage.engine import Database, Reader, Transaction
from blogapi.storage.errors import Conflict, Damaged, KeyName

BATCH_POSTS = 100  # read and checked before a transaction begins
BATCH_CHARACTERS = 1_000_000  # of content, likewise
TRANSACTION_SECONDS = 0.025  # after which it takes no more posts; the last post and the disk come on top
PAUSE_SECONDS = 0.01  # between two transactions: longer than the server sleeps while it waits for the lock
EXAMPLES = 3
CLEAR_LINE = "\r\x1b[K"  # of a progress bar
# What an import notes, in the order in which it is printed, and the remedy for each.
REMEDIES = {
    "relative images": "--base-url URL makes them absolute",
    "shortcodes": "only the old site knows them: replace them",
    "wiki links": "only the old site knows them: replace them",
    "links to files": "they should lead to slugs",
    "HTML": "it stays in the Markdown",
    "other slugs": "--redirects FILE lists the old ones",
    "old addresses": "--redirects FILE lists them",
}
SUMMARY = {"created": "made", "updated": "changed"}  # how a summary calls these outcomes, for scripts that read it

schema = PutPostSchema()

Checked = Item | list[Refused]  # a post whose fields are valid, or the reasons why it is refused
FileResult = tuple[str, Checked]  # with what was done: an outcome, or "refused"


def given_path(value: str) -> Path:
    """Return a path; refuse an empty one, from an unset shell variable, which Path takes for the current folder."""
    if not value:
        raise click.BadParameter("must not be empty")
    return Path(value)


def url(value: str) -> str:
    """Return the URL of a site."""
    if value and not re.fullmatch(URL, value):
        raise click.BadParameter("must be an absolute http or https URL without white space")
    return value


def utc(value: str) -> str:
    """Return a time as RFC 3339."""
    try:
        return rfc3339_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=given_path, metavar="PATH...")
@click.option("--dry-run", is_flag=True, help="Print the result for each post, and write nothing.")
@click.option("--events", is_flag=True, help="Call webhooks for posts that are created, updated or published.")
@click.option("--pages", is_flag=True, help="Also import the pages of an export.")
@click.option("--base-url", "site", metavar="URL", default="", type=url, help="Make relative images absolute.")
@click.option("--redirects", metavar="FILE", type=click.File("w", lazy=True), help="List old addresses and slugs.")
def import_posts(
    paths: tuple[Path, ...], dry_run: bool, events: bool, pages: bool, site: str, redirects: IO[str] | None
) -> None:
    """Import Markdown files, folders and exports.

    Exports come from WordPress (.xml) or Ghost (.json). A post that already has the slug is updated, so a second import
    changes nothing. Invalid files are reported with the reason; the others are imported, and the exit status is 1.
    After an interruption, repeat the command.
    """
    report, by = Report(dry_run), Config.from_environ(os.environ).author("import")
    with opened() as database, TemporaryFile() as spool:
        sources = Sources(paths, spool, now=time.time(), slug_of=posts.slug_of, pages=pages, site=site)
        if dry_run:
            results = (_result(_would_put, database, _checked(source)) for source in sources)
        else:
            results = with_progress(store(database, sources, events, by), len(sources))
        try:
            for outcome, checked in results:
                report.add(outcome, checked)
                if redirects and isinstance(checked, Item) and not dry_run:
                    redirects.writelines(moves(checked))
        finally:
            report.print(+sources.left_out)
    sys.exit(1 if report.outcomes["refused"] else 0)


def store(database: Database, sources: Iterable[Item | Refused], events: bool, by: str) -> Iterator[FileResult]:
    """Create or update posts; yield each result once it is on disk, outside of transactions. Raises Unavailable."""

    def put(tx: Transaction, item: Item) -> str:
        slug, fields = item.fields["slug"], item.fields
        return posts.put(tx, slug, fields, created_at=item.created_at, with_events=events, by=by).outcome

    pause = partial(time.sleep, PAUSE_SECONDS)
    for batch in _batches(sources):
        yield from posts.write_each(database, partial(_result, put), batch, TRANSACTION_SECONDS, pause)


def _would_put(reader: Reader, item: Item) -> str:
    return posts.would_put(reader, item.fields["slug"], item.fields)


def _batches(sources: Iterable[Item | Refused]) -> Iterator[list[Checked]]:
    batch, size = [], 0
    for source in sources:
        batch.append(_checked(source))
        size += len(source.fields.get("content", "")) if isinstance(source, Item) else 0
        if len(batch) == BATCH_POSTS or size > BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    yield batch


def _checked(source: Item | Refused) -> Checked:
    if isinstance(source, Refused):
        return [source]
    try:
        return source._replace(fields=schema.load(source.fields))
    except ValidationError as error:
        line_of = source.document.line_of
        return [Refused(source.source, line_of(field), sentence) for field, sentence in sentences(error)]


def _result(put: Callable[[Any, Item], str], reader: Reader, checked: Checked) -> FileResult:
    if isinstance(checked, list):
        return "refused", checked
    try:
        return put(reader, checked), checked
    except (Conflict, Damaged) as error:  # raised before anything is written
        line = checked.document.line_of(error.field) if isinstance(error, Conflict) else None
        return "refused", [Refused(checked.source, line, str(error))]


class Report:
    """The counts of an import, and what is left to do."""

    def __init__(self, dry_run: bool):
        self.dry_run = dry_run
        self.outcomes = Counter(created=0, updated=0, unchanged=0, refused=0)
        self.dropped: Counter[str] = Counter()
        self.places: defaultdict[str, list[str]] = defaultdict(list)  # of each kind of note

    def add(self, outcome: str, checked: Checked) -> None:
        """Count a result; print why it was refused, or what a dry run foresees."""
        self.outcomes[outcome] += 1
        if isinstance(checked, Item):
            self.dropped.update(checked.dropped)
            for what, line in checked.notes.items():
                self.places[what].append(f"{checked.source}:{line}" if line else checked.source)
            if "other slugs" not in checked.notes and any(moves(checked)):
                self.places["old addresses"].append(checked.source)
            if self.dry_run:
                click.echo(shown(f"{checked.source}: would be {outcome}: {_foreseen(checked, outcome)}"))
            return
        for reason in checked:
            click.echo(f"{CLEAR_LINE if sys.stderr.isatty() else ''}{reason}", err=True)

    def print(self, left_out: Mapping[str, int]) -> None:
        """Print the counts, with those of what is not imported."""
        would_be = "would be " if self.dry_run else ""
        lines = [would_be + counted({SUMMARY.get(outcome, outcome): count for outcome, count in self.outcomes.items()})]
        if left_out:
            hint = " (--pages imports pages)" if "page" in left_out else ""
            lines.append(f"{would_be}left out: {counted(left_out)}{hint}")
        if self.dropped:
            lines.append(f"{would_be}dropped: {counted(dict(self.dropped.most_common()))}")
        for what, remedy in REMEDIES.items():
            if places := self.places[what]:
                more = ", …" if len(places) > EXAMPLES else ""
                lines.append(f"{what} {len(places)} ({remedy}): {', '.join(places[:EXAMPLES])}{more}")
        for line in lines:
            click.echo(shown(line))


def counted(counts: Mapping[str, int]) -> str:
    """Return counts as a line of output."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def moves(item: Item) -> Iterator[str]:
    """Yield a line for each old address of a post that is not its slug."""
    for path in dict.fromkeys(quote(unquote(path)).strip("/") for path in item.old_paths):
        if path not in ("", item.fields["slug"]):
            yield f"/{path} /{item.fields['slug']}\n"


def _foreseen(item: Item, outcome: str) -> str:
    fields = item.fields
    status = fields.get("status", "draft" if outcome == "created" else "")
    parts = [fields["slug"], f"{status} {fields.get('published_at', '')}".strip()]
    named = {"tags": fields["tags"], "drops": item.dropped}
    parts += [f"{what} {', '.join(names)}" for what, names in named.items() if names]
    parts += [f"{what} in line {line}" if line else what for what, line in item.notes.items()]
    return "; ".join(filter(None, parts))


@click.command("export")
@click.argument("folder", type=given_path, metavar="DIR")
@click.option("--delete", is_flag=True, help="Remove the files of posts that are gone.")
def export_posts(folder: Path, delete: bool) -> None:
    """Write every post to DIR as a Markdown file, SLUG.md. Unchanged files are not touched."""
    with opened() as database:
        results = Counter(export(storage_pages.every(database), folder, delete=delete).values())
    counts = {name: results.pop(name, 0) for name in ("written", "unchanged", "deleted")}
    del results["kept"]
    for failure in results:
        click.echo(shown(failure), err=True)
    click.echo(counted(counts | ({"failed": len(results)} if results else {})))
    sys.exit(1 if results else 0)


@click.command("undo")
@click.option("--since", required=True, metavar="TIME", type=utc, help="A date or a time in UTC: 2026-11-20T10:10:00Z.")
@click.option("--key", metavar="NAME", help="Undo only changes by this key, or by `import`, `settings` or `undo`.")
@click.option("--dry-run", is_flag=True, help="Print the result for each post, and write nothing.")
def undo_posts(since: str, key: str | None, dry_run: bool) -> None:
    """Return every post to its state at a given time.

    Changed posts are changed back, deleted ones restored, and created ones moved to the trash. With --key, posts that
    another key has changed since then are left alone. Every post that is left is reported with the reason, and the exit
    status is 1. After an interruption, repeat the command. An undo can be undone.
    """
    if not Config.from_environ(os.environ).keep_days:
        raise click.ClickException("BLOGAPI_KEEP_DAYS is 0: there is no history to undo from")
    would_be = "would be " if dry_run else ""
    counts = Counter({"changed back": 0, "restored": 0, "deleted": 0, "left": 0})
    with opened() as database:
        try:
            if key is not None:
                history.check_author(database, key)
        except KeyName as error:
            raise click.BadParameter(str(error), param_hint="'--key'") from None
        try:
            for undone in history.undo(database, since, key, dry_run):
                counts[undone.action] += 1
                reason = f", {undone.reason}" if undone.reason else ""
                click.echo(shown(f"{undone.post_id} “{undone.title}”: {would_be}{undone.action}{reason}"))
        finally:
            click.echo(would_be + counted(counts))
    sys.exit(1 if counts["left"] else 0)
