"""The database as the command line uses it, and the commands about the whole of it: init, serve and backup."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from blogapi.cli.output import show, with_progress
from blogapi.config import Config
from blogapi.server.start import become_server, refuse_taken_address
from blogapi.storage import keys
from blogapi.storage.copy import copy
from blogapi.storage.engine import Database, engine_for

WELCOME = """\
{database} is set up, with a first key that is shown only now:

    {key}

Once the server runs, this creates a post:

    {curl}
"""
CURL = (
    "curl {url}/v1/posts -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' "
    """-d '{{"title": "Hello", "content": "My first post.", "status": "published"}}'"""
)


@contextmanager
def opened() -> Iterator[Database]:
    """Open the database that the environment names for a while; one that is missing or older stays so."""
    engine = engine_for(Config.from_environ(os.environ).database)
    engine.open(create=False, upgrade=False)
    try:
        yield Database(engine)
    finally:
        engine.close()


@click.command()
def init() -> None:
    """Set up the database where there is none, with a first key; bring an older one up to date."""
    set_up(Config.from_environ(os.environ))


@click.command()
def serve() -> None:
    """Set up the database as init does, and serve."""
    config = Config.from_environ(os.environ)
    refuse_taken_address(config.host, config.port)  # before a first key is shown, which is only once
    set_up(config)
    become_server()


def set_up(config: Config) -> None:
    """Set up a database, or upgrade it; make and show a first key where there is none."""
    engine = engine_for(config.database)
    engine.open()
    engine.close()
    with opened() as database:
        if not list(keys.listing(database)):  # also where the key of an earlier time could not be shown
            key = keys.new_key()
            show(WELCOME.format(database=engine.name, key=key, curl=CURL.format(url=config.url, key=key)))
            database.write(keys.add, "first", key)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def backup(file: Path) -> None:
    """Write a consistent copy of the database to FILE, also beside a running server. FILE must not exist yet."""
    try:
        engine_for(Config.from_environ(os.environ).database).backup(file)
    except OSError as error:
        raise OSError(f"cannot write the backup {file}: {error.strerror}") from error


@click.command("copy")
@click.argument("target")
def copy_database(target: str) -> None:
    """Copy the whole database to TARGET, a file or a URL of PostgreSQL, also beside a running server.

    TARGET must not exist yet, or be an empty database of PostgreSQL. Posts, keys, webhooks and what is still to be sent
    are the same there. What is interrupted leaves nothing there, and can be begun anew.
    """
    to = engine_for(Config.from_environ({"BLOGAPI_DATABASE": target}).database)
    with opened() as database:
        copy(database.engine, to, with_progress)
    click.echo(f"{database.engine.name} is copied to {to.name}")
