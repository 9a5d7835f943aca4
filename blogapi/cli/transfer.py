"""Import and export posts: the commands `import` and `export`."""

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any

import click

from blogapi.cli.commands import STATIC_OPTION, given_path, opened, with_progress
from blogapi.cli.images import given_url
from blogapi.config import Config
from blogapi.markdown.front_matter import shown
from blogapi.markdown.programs import STYLES
from blogapi.posts import due, lists
from blogapi.storage.database import Database
from blogapi.text import counted
from blogapi.wings.transfer.export import export
from blogapi.wings.transfer.fetch import Fetcher
from blogapi.wings.transfer.folder import Archives
from blogapi.wings.transfer.images import IMAGE_FOLDER, ImageStore, LocalImages
from blogapi.wings.transfer.importer import ImportResult, checked, predict, store, with_stored_images
from blogapi.wings.transfer.report import Report
from blogapi.wings.transfer.sites import PLACEHOLDERS, is_pattern
from blogapi.wings.transfer.sources import Sources

TOPS = ("", "static", "public")  # look in these subfolders for images if their URLs begin with a slash


def pattern(value: str) -> str:
    """Check a permalink pattern, and return it."""
    if value and not is_pattern(value):
        placeholders = ", ".join(f":{name}" for name in sorted(PLACEHOLDERS))
        raise click.BadParameter(f"must be one of {', '.join(STYLES)}, or contain some of {placeholders}")
    return value


def names(value: str) -> set[str]:
    return {name.strip() for name in value.split(",")}


@click.command("import")
@click.argument("paths", nargs=-1, required=True, type=given_path, metavar="PATH...")
@click.option("--dry-run", is_flag=True, help="Print the result for each post, and write nothing.")
@click.option("--events", is_flag=True, help="Send webhook events for created, updated and published posts.")
@click.option("--publish", is_flag=True, help="Publish dated files from unknown programs unless something hides them.")
@click.option("--pages", is_flag=True, help="Also import the pages of an export.")
@click.option("--base-url", "site", metavar="URL", type=given_url, help="Make relative image URLs absolute.")
@STATIC_OPTION
@click.option("--fetch-images", is_flag=True, help="Also fetch and store images from other hosts.")
@click.option("--no-images", is_flag=True, help="Store no images, and leave their URLs unchanged.")
@click.option("--drop", metavar="NAME,...", default="", type=names, help="Names in front matter to keep out of params.")
@click.option(
    "--date-from", metavar="NAME", default="", help="Name in front matter from which to read the date of undated files."
)
@click.option("--permalink", metavar="PATTERN", default="", type=pattern, help="The URL pattern of the old site.")
@click.option(
    "--redirects",
    metavar="FILE",
    type=click.File("w", "utf-8", lazy=True),
    help="Write each old URL and the slug of its post to FILE.",
)
def import_posts(
    paths: tuple[Path, ...],
    dry_run: bool,
    events: bool,
    static: Path | None,
    fetch_images: bool,
    no_images: bool,
    redirects: IO[str] | None,
    **options: Any,
) -> None:
    """Import Markdown files, folders, exports, feeds and zip archives, with their images.

    An export comes from WordPress or Blogger (.xml, .atom), Ghost (.json), Medium or Substack (a folder). A file
    updates the post with the same slug, so a second import changes nothing. If a file is invalid, it is skipped, and
    the exit status is 1.
    """
    config = Config.from_environ(os.environ)
    if fetch_images and no_images:
        raise click.UsageError("--fetch-images cannot be combined with --no-images")
    with opened() as database, TemporaryFile() as spool, TemporaryDirectory() as top:
        archives = Archives(paths, os.path.realpath(top))
        stored = ImageStore(database, config.images_mb * 1024**2, dry_run)
        report = Report(dry_run, redirects, stored.counts, archives.paths)
        images = None if no_images else LocalImages([*archives.paths], config.base_url, static, stored.is_stored, TOPS)
        options |= {"zone": config.timezone, "post_url": config.post_url}
        sources = Sources([*archives.paths], spool, time.time(), images=images, faults=archives.faults, **options)
        sources.unread |= archives.left_out
        fetcher = Fetcher(stored, images, sources.hosts, config.webhook_private) if images and fetch_images else None
        status = report.print_all(import_results(database, sources, stored, fetcher, events), sources)
    sys.exit(status)


def import_results(
    database: Database, sources: Sources, images: ImageStore, fetcher: Fetcher | None, events: bool
) -> Iterator[ImportResult]:
    """Import the posts while showing progress, and yield the results. A dry run only predicts them."""
    store_image = partial(images.store, sources.images.roots if sources.images else ())
    posts = map(partial(with_stored_images, store_image), map(checked, sources))
    posts = map(fetcher.with_fetched_images, posts) if fetcher else posts
    if images.dry_run:
        return predict(database, posts)
    return with_progress(
        store(database, posts, events),
        len(sources),
        lambda: f", images: {counted(images.counts)}" if images.counts.total() else "",
    )


@click.command("export")
@click.argument("folder", type=given_path, metavar="DIR")
@click.option("--delete", is_flag=True, help="Remove the files of posts that no longer exist, and unused images.")
@click.option("--flat", is_flag=True, help="Write the values in params at the top level of the front matter.")
@click.option("--standalone", is_flag=True, help="Make image URLs relative, so that the folder needs no server.")
def export_posts(folder: Path, **options: bool) -> None:
    """Write every post to a Markdown file, DIR/SLUG.md, along with the images used in posts.

    Files that are already up to date are not written again.
    """
    with opened() as database:
        due.publish_all(database)
        results = export(lists.every(database), folder, database, **options)
    failed = 0
    for name, parent in {"": folder, "images: ": folder / IMAGE_FOLDER}.items():
        outcomes = Counter(result for path, result in results.items() if path.parent == parent)
        counts = {outcome: outcomes.pop(outcome, 0) for outcome in ("written", "unchanged", "deleted")}
        del outcomes["kept"]
        for failure in outcomes:
            click.echo(shown(failure), err=True)
        failed += len(outcomes)
        if not name or outcomes or any(counts.values()):
            click.echo(name + counted(counts | ({"failed": len(outcomes)} if outcomes else {})))
    sys.exit(1 if failed else 0)
