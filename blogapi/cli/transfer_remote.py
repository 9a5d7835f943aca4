"""The commands that keep a folder and a service elsewhere the same: push, pull."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from blogapi.cli.commands import with_progress
from blogapi.cli.transfer import given_folder, given_path
from blogapi.config import Config
from blogapi.wings.markdown.front_matter import shown
from blogapi.wings.transfer.pull import Pull
from blogapi.wings.transfer.push import Push
from blogapi.wings.transfer.remote import Left, Remote, RemoteError
from blogapi.wings.transfer.report import CLEAR_LINE, counted, listed, refused_images
from blogapi.wings.transfer.working import WorkingFolder

CHANGED, LEFT = ("created", "updated", "deleted"), ("conflict", "failed")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")


def address(flag: str) -> Callable:
    """Return the option for the address of the service."""
    described: dict[str, Any] = {"metavar": "URL", "show_envvar": True, "help": "The address of the service."}
    return click.option(flag, "address", envvar="BLOGAPI_REMOTE", required=True, **described)


@click.command()
@click.argument("folder", type=given_folder)
@address("--to")
@click.option("--delete", is_flag=True, help="Move the posts of files that are gone to the trash.")
@click.option("--force", is_flag=True, help="Replace posts that have changed, too; accept another address.")
@DRY_RUN
def push(delete: bool, **where: Any) -> None:
    """Send what has changed in the Markdown files in FOLDER to a service, with the key in BLOGAPI_KEY.

    A file whose post has changed, too, is named and not sent; the exit status is then 1. After an interruption, repeat
    the command.
    """
    run(lambda working, remote: Push(working, remote, delete), **where)


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

    A file that has changed, too, is named and not written; the exit status is then 1. After an interruption, repeat the
    command.
    """
    run(lambda working, remote: Pull(working, remote, delete, theirs, published, images), **where)


def run(
    start: Callable[[WorkingFolder, Remote], Push | Pull], folder: Path, address: str, force: bool, dry_run: bool
) -> None:
    """Push or pull; print each change, and the counts. The exit status is 1 if files are left."""
    counts, would_be = Counter(created=0, updated=0, unchanged=0, conflict=0, failed=0), "would be " if dry_run else ""

    def say(text: str, err: bool = True) -> None:
        click.echo(f"{CLEAR_LINE if sys.stderr.isatty() else ''}{shown(text)}", err=err)

    with ExitStack() as stack:
        if dry_run and not folder.exists():
            folder = Path(stack.enter_context(TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        try:
            remote = Remote(address.rstrip("/"), os.environ.get("BLOGAPI_KEY", ""), say)
            zone = Config.from_environ(os.environ).timezone
            working = WorkingFolder(folder, remote, force, dry_run, zone)
            stack.enter_context(working.opened)
            action = start(working, remote)
            length = action.prepare()
            stack.callback(lambda: say(would_be + counted(counts), err=False))
            stack.callback(working.save)
            for what, name, why in chain(working.results, with_progress(action.results(), length)):
                counts[what] += 1
                if what != "unchanged":
                    text = f"{would_be if what in CHANGED else ''}{what} {name}"
                    say(f"{text}: {why}" if why else text, err=what in LEFT)
            for line in refused_images(working.images.refused):
                say(line)
            if left_out := +working.files.left_out:
                say(f"Left out: {listed(left_out)}.")
        except (RemoteError, Left) as error:
            raise ValueError(shown(error.args[-1])) from None
    sys.exit(1 if counts["conflict"] or counts["failed"] else 0)
