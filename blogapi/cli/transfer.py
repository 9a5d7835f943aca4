"""The commands that read or write many posts: import, export, undo."""

import os
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import IO

import click

from blogapi.cli.commands import opened, with_progress
from blogapi.cli.importer import Report, counted, foresee, redirects, store
from blogapi.config import Config
from blogapi.files.export import export
from blogapi.files.front_matter import rfc3339_of, shown
from blogapi.files.sources import open_sources
from blogapi.post import URL
from blogapi.storage import pages as storage_pages
from blogapi.storage import undo
from blogapi.storage.errors import KeyName
from blogapi.storage.posts import slug_of


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
@click.option("--events", is_flag=True, help="Tell webhooks what is created, updated and published.")
@click.option("--pages", is_flag=True, help="Import the pages of an export, too.")
@click.option("--base-url", "site", metavar="URL", default="", type=url, help="Make relative images absolute.")
@click.option(
    "--redirects",
    "redirects_file",
    metavar="FILE",
    type=click.File("w", lazy=True),
    help="Write `/old/path /slug` lines.",
)
def import_posts(
    paths: tuple[Path, ...], dry_run: bool, events: bool, pages: bool, site: str, redirects_file: IO[str] | None
) -> None:
    """Import Markdown files, folders and exports.

    Exports are those of WordPress (.xml) and Ghost (.json). A post with the same slug becomes what the file says, so
    that a second import changes nothing. Files that cannot be read are named with the reason; the others are imported,
    and the exit status is 1. After an interruption, repeat the command.
    """
    report, by = Report(dry_run), Config.from_environ(os.environ).author("import")
    with opened() as database, open_sources(paths, now=time.time(), slug_of=slug_of, pages=pages, site=site) as sources:
        results = foresee(database, sources) if dry_run else store(database, sources, events, by)
        try:
            for result in results if dry_run else with_progress(results, len(sources)):
                report.add(result)
                if redirects_file and result.item and not dry_run:
                    redirects_file.writelines(redirects(result.item))
        finally:
            report.print(+sources.left_out)
    sys.exit(1 if report.outcomes["refused"] else 0)


@click.command("export")
@click.argument("folder", type=given_path, metavar="DIR")
@click.option("--delete", is_flag=True, help="Remove the files that an earlier export wrote for posts that are gone.")
def export_posts(folder: Path, delete: bool) -> None:
    """Write every post to DIR as a Markdown file, SLUG.md. Files with the same content are not touched."""
    with opened() as database:
        summary = export(storage_pages.every(database), folder, delete=delete)
    for failure in summary.failed:
        click.echo(shown(failure), err=True)
    failed = f", failed {len(summary.failed)}" if summary.failed else ""
    click.echo(f"written {summary.written}, unchanged {summary.unchanged}, deleted {summary.deleted}{failed}")
    sys.exit(1 if summary.failed else 0)


@click.command("undo")
@click.option("--since", required=True, metavar="TIME", type=utc, help="A date or a time in UTC: 2026-11-20T10:10:00Z.")
@click.option("--key", metavar="NAME", help="Undo only what this key did; `import`, `settings` and `undo` work, too.")
@click.option("--dry-run", is_flag=True, help="Print what would be done, and write nothing.")
def undo_changes(since: str, key: str | None, dry_run: bool) -> None:
    """Return every post to its state at a time.

    Changed posts are changed back, deleted ones restored, and created ones go to the trash. With --key, a post that
    another key changed since is left. Every post that is left is named with the reason, and the exit status is 1. After
    an interruption, repeat the command. An undo can be undone.
    """
    if not Config.from_environ(os.environ).keep_days:
        raise click.ClickException("BLOGAPI_KEEP_DAYS is 0: there is no history to undo from")
    would_be = "would be " if dry_run else ""
    counts = Counter({"changed back": 0, "restored": 0, "deleted": 0, "left": 0})
    with opened() as database:
        try:
            if key is not None:
                undo.check_author(database, key)
        except KeyName as error:
            raise click.BadParameter(str(error), param_hint="'--key'") from None
        try:
            for undone in undo.undo(database, since, key, dry_run):
                counts[undone.action] += 1
                reason = f", {undone.reason}" if undone.reason else ""
                click.echo(shown(f"{undone.post_id} “{undone.title}”: {would_be}{undone.action}{reason}"))
        finally:
            click.echo(would_be + counted(counts))
    sys.exit(1 if counts["left"] else 0)
