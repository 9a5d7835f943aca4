"""The commands that read and write files: import, export and openapi."""

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import click
from flask import Flask

from blogapi.cli.commands import opened
from blogapi.cli.importer import Result, foresee, store
from blogapi.cli.output import with_progress
from blogapi.files.export import export
from blogapi.files.items import shown
from blogapi.files.sources import open_sources
from blogapi.storage import pages
from blogapi.storage.posts import slug_of
from blogapi.web.openapi.description import describe
from blogapi.web.views import blueprint

CLEAR_LINE = "\r\x1b[K"  # of a progress bar


class GivenPath(click.Path):
    """A path, and not what an unset shell variable gives, which Path takes for the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; refuse an empty text."""
        return super().convert(value, param, ctx) if value else self.fail("must not be empty", param, ctx)


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=GivenPath(path_type=Path), metavar="PATH...")
@click.option("--dry-run", is_flag=True, help="Say for each file what would happen, and write nothing.")
@click.option("--events", is_flag=True, help="Tell webhooks of what is made, changed and published.")
def import_posts(paths: tuple[Path, ...], dry_run: bool, events: bool) -> None:
    """Make posts of Markdown files, of folders of them, and of exports of WordPress (.xml) and Ghost (.json).

    A post that has the same slug is made what the file says, so that a second import changes nothing. What cannot be
    read is named with the reason, and the others go on; the exit status is then 1. What was interrupted goes on when
    the same command is given again.
    """
    counts = Counter(created=0, updated=0, unchanged=0, refused=0)
    dropped: Counter[str] = Counter()
    with opened() as database, open_sources(paths, now=time.time(), slug_of=slug_of) as sources:
        results = foresee(database, sources) if dry_run else store(database, sources, events)
        try:
            for result in results if dry_run else with_progress(results, len(sources)):
                report(result, dry_run)
                counts[result.outcome] += 1
                dropped.update(result.dropped)
        finally:
            summarize(counts, dropped, "would be " if dry_run else "")
    sys.exit(1 if counts["refused"] else 0)


@click.command("export")
@click.argument("folder", type=GivenPath(path_type=Path), metavar="DIR")
@click.option("--delete", is_flag=True, help="Remove what an earlier export wrote of posts that are gone.")
def export_posts(folder: Path, delete: bool) -> None:
    """Write every post to DIR as a Markdown file, SLUG.md. What is there with the same content is not touched."""
    with opened() as database:
        summary = export(pages.every(database), folder, delete=delete)
    for failure in summary.failed:
        click.echo(shown(failure), err=True)
    failed = f", failed {len(summary.failed)}" if summary.failed else ""
    click.echo(f"written {summary.written}, unchanged {summary.unchanged}, deleted {summary.deleted}{failed}")
    sys.exit(1 if summary.failed else 0)


@click.command()
def openapi() -> None:
    """Print the description of the API (OpenAPI 3.1), as the server has it at /openapi.json."""
    app = Flask(__name__)
    app.register_blueprint(blueprint)
    click.echo(json.dumps(describe(app), indent=2))


def report(result: Result, dry_run: bool) -> None:
    """Print why a post was refused, or, of what is only tried, what would be done."""
    for reason in result.reasons:
        click.echo(f"{CLEAR_LINE if sys.stderr.isatty() else ''}{shown(str(reason))}", err=True)
    if dry_run and not result.reasons:
        click.echo(f"{result.source}: would be {result.outcome}")


def summarize(counts: Counter[str], dropped: Counter[str], would_be: str) -> None:
    """Print what was done, and what of the front matter has no place in a post."""
    click.echo(would_be + ", ".join(f"{outcome} {count}" for outcome, count in counts.items()))
    if dropped:
        click.echo(f"{would_be}dropped: {', '.join(f'{shown(name)} {count}' for name, count in dropped.most_common())}")
