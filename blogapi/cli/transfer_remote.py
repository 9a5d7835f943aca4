"""The commands that sync a folder with a service: push and pull."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from blogapi.cli.commands import with_progress
from blogapi.cli.images import given_path
from blogapi.cli.transfer import FOLDER
from blogapi.config import Config
from blogapi.wings.markdown.front_matter import shown
from blogapi.wings.transfer.folder import Folder
from blogapi.wings.transfer.pull import Pull
from blogapi.wings.transfer.push import Push
from blogapi.wings.transfer.remote import Left, Remote, RemoteError
from blogapi.wings.transfer.report import counted, left_out, refused_images, say, settings_of
from blogapi.wings.transfer.working import WorkingFolder

CHANGED, LEFT = ("created", "updated", "deleted"), ("conflict", "failed")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")


def address(flag: str) -> Callable:
    """Return the option for the address of the service."""
    described: dict[str, Any] = {"metavar": "URL", "show_envvar": True, "help": "The address of the service."}
    return click.option(flag, "address", envvar="BLOGAPI_REMOTE", required=True, **described)


@click.command()
@click.argument("folder", type=FOLDER)
@address("--to")
@click.option("--delete", is_flag=True, help="Move the posts of files that are gone to the trash.")
@click.option("--force", is_flag=True, help="Replace posts that have changed, too; accept another address.")
@DRY_RUN
def push(delete: bool, **where: Any) -> None:
    """Send what has changed in the Markdown files in FOLDER to a service, with the key in BLOGAPI_KEY.

    A file whose post has changed, too, is reported and not sent; the exit status is then 1. After an interruption,
    repeat the command.
    """
    run(partial(Push, delete=delete), **where)


@click.command()
@click.argument("folder", type=given_path)
@address("--from")
@click.option("--delete", is_flag=True, help="Remove the files of posts that are gone.")
@click.option("--theirs", is_flag=True, help="Write files that have changed, too, and keep yours as NAME.mine.md.")
@click.option("--published", is_flag=True, help="Create no files for posts that are not published.")
@click.option("--images", is_flag=True, help="Fetch images to FOLDER/images, and let the files lead to them.")
@click.option("--force", is_flag=True, help="Accept another address, and a blog without posts.")
@DRY_RUN
def pull(delete: bool, theirs: bool, published: bool, images: bool, **where: Any) -> None:
    """Write what has changed in the posts of a service to Markdown files in FOLDER, with the key in BLOGAPI_KEY.

    A file that has changed, too, is reported and not written; the exit status is then 1. After an interruption, repeat
    the command.
    """
    run(partial(Pull, delete=delete, theirs=theirs, published=published, images=images), **where)


def run(
    start: Callable[[WorkingFolder, Remote], Push | Pull], folder: Path, address: str, force: bool, dry_run: bool
) -> None:
    """Push or pull. The exit status is 1 if any file or post was left alone."""
    zone = Config.from_environ(os.environ).timezone
    with ExitStack() as stack:
        if dry_run and not folder.exists():
            folder = Path(stack.enter_context(TemporaryDirectory()))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            remote = Remote(address.rstrip("/").removesuffix("/v1"), os.environ.get("BLOGAPI_KEY", ""), say)
            opened = stack.enter_context(closing(Folder(folder)))
            working = WorkingFolder(opened, remote, force, dry_run, zone)
            counts = print_results(start(working, remote), working)
        except (RemoteError, Left) as error:
            raise ValueError(shown(error.args[-1])) from None
        except OSError as error:
            raise ValueError(shown(f"{folder}: {error.strerror}")) from None
    sys.exit(1 if counts["conflict"] or counts["failed"] else 0)


def print_results(action: Push | Pull, working: WorkingFolder) -> Counter[str]:
    """Push or pull; print each change, what was left out, and the counts; return the counts."""
    counts = Counter(created=0, updated=0, unchanged=0, conflict=0, failed=0)
    would_be = "would be " if working.dry_run else ""
    length = action.prepare()
    try:
        for what, name, why in chain(working.results, with_progress(action.results(), length)):
            counts[what] += 1
            if what != "unchanged":
                text = f"{would_be if what in CHANGED else ''}{what} {name}"
                say(f"{text}: {why}" if why else text, err=what in LEFT)
        for line in (*refused_images(working.files), *settings_of(working.files), *left_out(working.files, "Left out")):
            say(line)
    finally:
        working.save()
        say(would_be + counted(counts), err=False)
    return counts
