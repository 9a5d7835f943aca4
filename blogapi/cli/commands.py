"""The commands for the database, its keys and the owner's page."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from blogapi.config import Config
from blogapi.server.start import SETTINGS, refuse_taken_address
from blogapi.storage import engine_for
from blogapi.storage import keys as api_keys
from blogapi.storage.copy import copy
from blogapi.storage.engine import Database
from blogapi.storage.errors import KeyName, Unavailable
from blogapi.storage.models import FULL, PUBLISHED_ONLY, READ_ONLY

ITEMS_A_LINE = 1000  # of progress
WELCOME = """\
{database} is ready. Its first key, which is shown only once:

    {key}

Once the server runs, this creates a post:

    curl {url}/v1/posts -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \
-d '{{"title": "Hello", "content": "My first post.", "status": "published"}}'
"""

T = TypeVar("T")


@contextmanager
def opened(create: bool = False) -> Iterator[Database]:
    """Open the database of the environment. It is set up or upgraded only with `create`."""
    engine = engine_for(Config.from_environ(os.environ).database)
    engine.open(create)
    try:
        yield Database(engine)
    finally:
        engine.close()


def show(text: str) -> None:
    """Print text that is shown only once; raise OSError if that is not possible."""
    if sys.stdout is None:
        raise OSError("standard output is closed: nothing was changed")
    try:
        click.echo(text)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again when it exits
        raise OSError(f"cannot write to standard output: {error.strerror}; nothing was changed") from error


def with_progress(results: Iterable[T], length: int) -> Iterator[T]:
    """Show the progress: a bar on a terminal, otherwise a line now and then."""
    if sys.stderr.isatty():
        with click.progressbar(results, length, file=sys.stderr) as bar:
            yield from bar
        return
    for number, result in enumerate(results, 1):
        yield result
        if number % ITEMS_A_LINE == 0:
            click.echo(f"{number} of {length}", err=True)


@click.command()
def init() -> None:
    """Set up the database, with a first key."""
    set_up(Config.from_environ(os.environ))


@click.command()
@click.option("--host", help="The address to listen on (HOST).")
@click.option("--port", help="The port to listen on (PORT).")
def serve(host: str | None, port: str | None) -> None:
    """Set up the database as init does, and serve."""
    os.environ.update({name: value for name, value in (("HOST", host), ("PORT", port)) if value is not None})
    config = Config.from_environ(os.environ)
    refuse_taken_address(config.host, config.port)  # before a first key is shown, which is only once
    set_up(config)
    # In place of this process, as it has imported modules that gevent must patch first
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "--config", SETTINGS])


def set_up(config: Config) -> None:
    """Set up or upgrade a database; create and show a first key if no key exists."""
    with opened(create=True) as database:
        if not api_keys.listing(database, 1):  # also if an earlier first key could not be shown
            key = api_keys.new_key()
            show(WELCOME.format(database=database.engine.name, key=key, url=config.url))
            database.write(api_keys.add, "first", key)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def backup(file: Path) -> None:
    """Write a consistent copy of the database to FILE.

    FILE must not exist yet. The server can go on running.
    """
    try:
        engine_for(Config.from_environ(os.environ).database).backup(file)
    except OSError as error:
        raise OSError(f"cannot write the backup {file}: {error.strerror}") from error


@click.command("copy")
@click.argument("target")
def copy_database(target: str) -> None:
    """Copy the whole database to TARGET.

    TARGET is a file that does not exist yet, or the URL of an empty database of PostgreSQL. Posts, keys, webhooks and
    pending deliveries are the same there. The server can go on running. If the copy is interrupted, it leaves nothing
    there and can be started again.
    """
    to = engine_for(Config.from_environ({"BLOGAPI_DATABASE": target}).database)
    with opened() as database:
        copy(database.engine, to, with_progress)
    click.echo(f"copied {database.engine.name} to {to.name}")


@click.group()
def keys() -> None:
    """Create, list, regenerate and revoke API keys."""


@keys.command("create")
@click.argument("name")
@click.option("--read-only", is_flag=True, help="It may only read posts and tags.")
@click.option("--published-only", is_flag=True, help="It may only read published posts and their tags.")
def create_key(name: str, read_only: bool, published_only: bool) -> None:
    """Create a key called NAME and print it. It is shown only once."""
    scope = PUBLISHED_ONLY if published_only else READ_ONLY if read_only else FULL
    with opened() as database:
        api_keys.check_free(database, name)
        _show_and_store(database, partial(api_keys.add, scope=scope), name)


@keys.command("list")
def list_keys() -> None:
    """List the keys: name, last four characters, creation, day of the last use, scope."""
    with opened() as database:
        rows = [key[:-1] for key in api_keys.listing(database)]
    width = max(len(name) for name, *_ in [("NAME",), *rows])
    for name, last_four, created_at, used, scope in [("NAME", "LAST FOUR", "CREATED", "LAST USED", "SCOPE"), *rows]:
        click.echo(f"{name:<{width}}  {last_four:<9}  {created_at:<20}  {used or 'never':<10}  {scope}")


@keys.command("regenerate")
@click.argument("name")
def regenerate_key(name: str) -> None:
    """Replace the key called NAME by a new one with the same scope, and print it. The old one stops working at once."""
    with opened() as database:
        api_keys.check_known(database, name)
        _show_and_store(database, api_keys.replace, name)


@keys.command("revoke")
@click.argument("name")
def revoke_key(name: str) -> None:
    """Revoke the key called NAME. It stops working at once."""
    with opened() as database:
        database.write(api_keys.remove, name)


def _show_and_store(database: Database, write: Callable, name: str) -> None:
    """Show a new key, then store it: a key that was never shown must not be valid.

    It is shown outside the transaction, which a stopped terminal (Ctrl-S) would keep open.
    """
    key = api_keys.new_key()
    show(key)
    try:
        database.write(write, name, key)
    except (KeyName, Unavailable) as error:
        raise ValueError(f"the key above is not valid: {error}") from error


@click.command()
@click.option("--end", is_flag=True, help="End all sessions, and the links that nobody has used.")
def settings(end: bool) -> None:
    """Print a link to the owner's page. It works once, for ten minutes, and opens a session of twelve hours."""
    url = Config.from_environ(os.environ).url
    with opened() as database:
        if end:
            database.write(api_keys.end_sessions)
        else:
            link = database.write(api_keys.add_link)
            try:
                show(f"{url}/settings/open?link={link}")
            except OSError:
                database.write(api_keys.end_session, link)
                raise
