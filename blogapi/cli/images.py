"""The command for images."""

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

import click

from blogapi.api.schemas import URL
from blogapi.cli.commands import opened
from blogapi.clock import earlier
from blogapi.config import Config
from blogapi.documents import MAX_URL
from blogapi.storage.database import Database
from blogapi.storage.errors import Rejected
from blogapi.wings.images import storage as images
from blogapi.wings.images.rebase import AUTHOR, rebase
from blogapi.wings.markdown.front_matter import shown


def given_path(value: str) -> Path:
    """Return a path. Refuse "", the value of an unset shell variable, which Path takes for the current folder."""
    if not value:
        raise click.BadParameter("must not be empty")
    return Path(value)


def given_url(value: str) -> str:
    """Return a URL without a slash at its end."""
    if len(value) > MAX_URL or not re.fullmatch(URL, value):
        raise click.BadParameter("must be an absolute http or https URL without white space")
    return value.rstrip("/")


@click.command("images")
@click.option("--unused", is_flag=True, help="Only images older than a day that nothing uses.")
@click.option("--delete", "deletes", is_flag=True, help="Delete them; needs --unused.")
@click.option(
    "--rebase",
    "former",
    metavar="URL",
    type=given_url,
    help="Replace this former BLOGAPI_URL in the posts' addresses of images.",
)
def list_images(unused: bool, deletes: bool, former: str | None) -> None:
    """List the images: id, size in bytes, time of the upload, name.

    With --rebase, change their addresses in all posts to the current ones. One undo reverts that.
    """
    if deletes and not unused:
        raise click.UsageError("--delete needs --unused")
    if former and unused:
        raise click.UsageError("--rebase goes without --unused")
    with opened() as database:
        if former:
            sys.exit(rebase_images(database, former))
        used = images.used_ids(database) if unused else ()
        write, a_day_ago = database.write_freeing, earlier(database.now, images.UPLOAD_TIME)
        for image in images.every(database):
            if unused and (image.id in used or image.created_at > a_day_ago):
                continue
            click.echo(shown(f"{image.id}  {image.bytes:>10,}  {image.created_at}  {image.name}"))
            since = database.now
            if deletes and not images.uses_of(database, image.id):  # A post may show it by now.
                with suppress(Rejected):
                    images.delete_upload(write, write(images.delete, image.id, since))


def rebase_images(database: Database, old: str) -> int:
    """Change the addresses of images in all posts, and print which posts changed; return the exit status."""
    since, changed, left = database.now, 0, 0
    for slug, reason in rebase(database, old, Config.from_environ(os.environ).base_url):
        click.echo(shown(f"{slug}: {f'left: {reason}' if reason else 'changed'}"))
        left, changed = left + bool(reason), changed + (not reason)
    click.echo(f"changed {changed}, left {left}")
    if changed:
        click.echo(f"To revert this: blogapi undo --since {since} --key {AUTHOR.name}", err=True)
    return 1 if left else 0
