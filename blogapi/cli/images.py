"""List images, delete unused ones, and change image URLs in posts: the command `images`."""

import os
import re
import sys
from contextlib import suppress
from functools import partial

import click
from marshmallow import ValidationError

from blogapi import documents
from blogapi.api.schemas import URL, sentences
from blogapi.cli.commands import opened
from blogapi.clock import earlier
from blogapi.config import Config
from blogapi.markdown.front_matter import shown
from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.posts.schemas import PostInputSchema
from blogapi.storage.database import Database, write_each
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import PostDoesNotExist, Rejected
from blogapi.storage.models import Author
from blogapi.wings.images import storage as images

AUTHOR = Author("rebase")  # the author of these changes in the history
# The fields that can contain an image's URL
WITH_URLS = [name for name, field in documents.FIELDS.items() if field.kind in ("text", "url", "params")]
post_schema = PostInputSchema(partial=True)


def given_url(value: str) -> str:
    """Return a URL without its trailing slash."""
    if len(value) > documents.MAX_URL or not re.fullmatch(URL, value):
        raise click.BadParameter("must be an absolute http or https URL without white space")
    return value.rstrip("/")


@click.command("images")
@click.option("--unused", is_flag=True, help="List only unused images that are older than a day.")
@click.option("--delete", "deletes", is_flag=True, help="Delete the listed images. Needs --unused.")
@click.option("--rebase", "old", metavar="URL", type=given_url, help="Replace this old BLOGAPI_URL in image URLs.")
def list_images(unused: bool, deletes: bool, old: str | None) -> None:
    """List the images: id, size in bytes, time of the upload, name.

    With --rebase, rewrite the image URLs in all posts to begin with the current BLOGAPI_URL. A single undo reverts
    this.
    """
    if deletes and not unused:
        raise click.UsageError("--delete needs --unused")
    if old and unused:
        raise click.UsageError("--rebase cannot be combined with --unused")
    with opened() as database:
        if old:
            sys.exit(rebase_images(database, old))
        used = images.used_ids(database) if unused else ()
        write, a_day_ago = database.write_freeing, earlier(database.now, images.UPLOAD_TIME)
        for image in images.every(database):
            if unused and (image.id in used or image.created_at > a_day_ago):
                continue
            click.echo(shown(f"{image.id}  {image.bytes:>10,}  {image.created_at}  {image.name}"))
            since = database.now
            if deletes and not images.uses_of(database, image.id):  # A post may have begun to use it in the meantime.
                with suppress(Rejected):
                    images.delete_upload(database, write, write(images.delete, image.id, since))


def rebase_images(database: Database, old: str) -> int:
    """Change the service's URL in image URLs. Print the affected posts, and return the exit status.

    Webhooks receive no events for these changes. Posts in the trash and in the history are not changed.
    """
    since, changed, left, new = database.now, 0, 0, Config.from_environ(os.environ).base_url
    urls = re.compile(rf"{re.escape(old)}(?=/images/{images.IMAGE_ID}\.)")
    affected = [int(post["id"]) for post in lists.every(database) if urls.search(documents.dump(post))]
    change = partial(rebase_post, replace=partial(urls.sub, lambda _: new))
    for slug, reason in filter(None, write_each(database, change, affected)):
        click.echo(shown(f"{slug}: {f'left alone: {reason}' if reason else 'changed'}"))
        left, changed = left + bool(reason), changed + (not reason)
    click.echo(f"changed {changed}, left alone {left}")
    if changed:
        click.echo(f"To revert this: blogapi undo --since {since} --key {AUTHOR.name}", err=True)
    return 1 if left else 0


def rebase_post(tx: Transaction, post_id: int, replace: partial[str]) -> tuple[str, str] | None:
    """Change the image URLs in a post. Return its slug, and "" or why it was left alone; None if nothing changes."""
    try:
        post = posts.get_to_change(tx, post_id)
    except PostDoesNotExist:  # The post was deleted in the meantime.
        return None
    old = documents.load(post.document)
    changed = {name: documents.each_text(old[name], replace) for name in WITH_URLS if name in old}
    try:
        new = documents.in_order(old | post_schema.load(changed))
    except ValidationError as error:
        return old["slug"], "; ".join(sentence for _, sentence in sentences(error))
    if posts.is_same(old, new):  # The URL occurs only in the title, or is already the current one.
        return None
    posts.write_version(tx, post, old, new, AUTHOR, with_events=False)
    return old["slug"], ""
