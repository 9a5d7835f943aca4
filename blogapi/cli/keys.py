"""The commands about API keys: create, list, regenerate and revoke."""

from collections.abc import Callable
from functools import partial

import click

from blogapi.cli.database import opened
from blogapi.cli.output import show
from blogapi.storage import keys as api_keys
from blogapi.storage.engine import Database
from blogapi.storage.errors import KeyName, Unavailable
from blogapi.storage.models import FULL, PUBLISHED_ONLY, READ_ONLY


@click.group()
def keys() -> None:
    """Create, list, regenerate and revoke API keys."""


@keys.command("create")
@click.argument("name")
@click.option("--read-only", is_flag=True, help="It may only read posts and tags.")
@click.option("--published-only", is_flag=True, help="It may only read published posts and their tags.")
def create_key(name: str, read_only: bool, published_only: bool) -> None:
    """Create a key called NAME and print it. It is shown only now."""
    scope = PUBLISHED_ONLY if published_only else READ_ONLY if read_only else FULL
    with opened() as database:
        api_keys.check_free(database, name)
        put_in_force(database, partial(api_keys.add, scope=scope), name)


@keys.command("list")
def list_keys() -> None:
    """List the keys: name, last four characters, when made, day of the last use, what they may do."""
    with opened() as database:
        rows = list(api_keys.listing(database))
    width = max(len(name) for name, *_ in [("NAME",), *rows])
    for name, last_four, created_at, used, scope in [("NAME", "LAST FOUR", "MADE", "LAST USED", "SCOPE"), *rows]:
        click.echo(f"{name:<{width}}  {last_four:<9}  {created_at:<20}  {used or 'never':<10}  {scope}")


@keys.command("regenerate")
@click.argument("name")
def regenerate_key(name: str) -> None:
    """Replace the key called NAME by a new one that may do the same, and print that. The old one is dead at once."""
    with opened() as database:
        api_keys.check_known(database, name)
        put_in_force(database, api_keys.replace, name)


@keys.command("revoke")
@click.argument("name")
def revoke_key(name: str) -> None:
    """Revoke the key called NAME. It is dead at once."""
    with opened() as database:
        database.write(api_keys.remove, name)


def put_in_force(database: Database, write: Callable, name: str) -> None:
    """Show a new key, then write it down: a key that was never shown must not be in force.

    It is shown outside the transaction, which a terminal that is stopped (Ctrl-S) would keep open.
    """
    key = api_keys.new_key()
    show(key)
    try:
        database.write(write, name, key)
    except (KeyName, Unavailable) as error:
        raise ValueError(f"the key that was shown is not in force: {error}") from error
