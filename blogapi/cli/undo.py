"""Undo changes to posts: the command `undo`."""

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta

import click

from blogapi.cli.commands import opened
from blogapi.clock import earlier, rfc3339
from blogapi.config import Config
from blogapi.markdown.dates import rfc3339_of
from blogapi.markdown.front_matter import shown
from blogapi.storage.errors import BadKeyName
from blogapi.text import counted
from blogapi.wings.history import undo

ACTIONS = ("changed back", "restored", "moved to the trash", "left alone")  # possible results for a post


def utc(value: str) -> str:
    """Return a date or time in RFC 3339."""
    try:
        return rfc3339_of(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


@click.command("undo")
@click.option(
    "--since", required=True, metavar="TIME", type=utc, help="A date or time in UTC, such as 2026-11-20T10:10:00Z."
)
@click.option(
    "--key",
    metavar="NAME",
    help="Undo only the changes made by NAME: a key, or `import`, `settings`, `autosave`, `rebase` or `undo`.",
)
@click.option("--dry-run", is_flag=True, help="Print the result for each post, and write nothing.")
@click.option("--yes", is_flag=True, help="Skip the confirmation that is needed without --key.")
def undo_posts(since: str, key: str | None, dry_run: bool, yes: bool) -> None:
    """Return every post to its state at a given time.

    Changed posts are reverted, deleted posts are restored, and new posts are moved to the trash. With --key, a post is
    left alone if another key has changed it since then. If posts are left alone, they are reported with the reason, and
    the exit status is 1. The exit status is also 1 if TIME is older than the history. After an interruption, repeat the
    command. An undo can itself be undone.
    """
    keep_days = Config.from_environ(os.environ).keep_days
    if not keep_days:
        raise click.ClickException("BLOGAPI_KEEP_DAYS is 0: there is no history to undo from")
    kept_since = earlier(rfc3339(time.time()), timedelta(days=keep_days))
    with opened() as database:
        if key is not None:
            try:
                undo.check_author(database, key)
            except BadKeyName as error:
                raise click.BadParameter(str(error), param_hint="'--key'") from None
        elif not (dry_run or yes) and sys.stdin.isatty():
            actions = Counter(undone.action for undone in undo.undo(database, since, dry_run=True))
            counts = counted({action: actions[action] for action in (*ACTIONS, *actions)})
            click.confirm(f"This undoes the changes made with all keys: {counts}. Continue?", abort=True, err=True)
        left = print_undone(undo.undo(database, since, key, dry_run), "would be " if dry_run else "")
    if since < kept_since:
        click.echo(f"The history begins at {kept_since}: earlier changes cannot be undone.", err=True)
    sys.exit(1 if left or since < kept_since else 0)


def print_undone(results: Iterable[undo.Undone], would_be: str) -> int:
    """Print the result for each post, and the counts. Return how many posts were left alone."""
    counts = Counter(dict.fromkeys(ACTIONS, 0))
    try:
        for undone in results:
            counts[undone.action] += 1
            reason = f", {undone.reason}" if undone.reason else ""
            title = f" “{undone.title}”" if undone.title else ""
            click.echo(shown(f"{undone.post_id}{title}: {would_be}{undone.action}{reason}"))
    finally:
        click.echo(would_be + counted(counts))
    return counts["left alone"]
