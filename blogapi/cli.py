"""The command line: `blogapi init` and `blogapi keys …`, beside the running server or without one."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from flask import Flask

from blogapi.config import Config
from blogapi.storage import keys as api_keys
from blogapi.storage.database import Database
from blogapi.storage.errors import KeyName, Unavailable
from blogapi.storage.sqlite import Sqlite
from blogapi.web.openapi.description import describe
from blogapi.web.views import blueprint

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


def main() -> None:
    """Run the command line; a failure is one line and the exit status 1."""
    try:
        commands()
    except (OSError, Unavailable, ValueError) as error:
        sys.exit(f"blogapi: {error}")


@click.group(name="blogapi")
def commands() -> None:
    """Look after a blogapi database. BLOGAPI_DATABASE names it."""


@commands.command()
def init() -> None:
    """Set up the database where there is none, with a first key; bring an older one up to date."""
    config = Config.from_environ(os.environ)
    engine = Sqlite(config.database)
    if engine.open():
        host = "127.0.0.1" if config.host in ("0.0.0.0", "::") else config.host
        url = f"http://[{host}]:{config.port}" if ":" in host else f"http://{host}:{config.port}"
        key = api_keys.new_key()
        show(WELCOME.format(database=config.database, key=key, curl=CURL.format(url=url, key=key)))
        Database(engine).write(api_keys.add, "first", key)
    engine.close()


@commands.command()
@click.argument("file", type=click.Path(path_type=Path))
def backup(file: Path) -> None:
    """Write a consistent copy of the database to FILE, also beside a running server. FILE must not exist yet."""
    with opened() as database:
        try:
            database.backup(file)
        except OSError as error:
            raise OSError(f"cannot write the backup {file}: {error.strerror}") from error


@commands.command()
def openapi() -> None:
    """Print the description of the API (OpenAPI 3.1), as the server has it at /openapi.json."""
    app = Flask(__name__)
    app.register_blueprint(blueprint)
    click.echo(json.dumps(describe(app), indent=2))


@commands.group()
def keys() -> None:
    """Create, list, regenerate and revoke API keys."""


@keys.command("create")
@click.argument("name")
def create_key(name: str) -> None:
    """Create a key called NAME and print it. It is shown only now."""
    with opened(create=True) as database:
        api_keys.check_free(database, name)
        put_in_force(database, api_keys.add, name)


@keys.command("list")
def list_keys() -> None:
    """List the keys: name, last four characters, when made, day of the last use."""
    with opened() as database:
        rows = [(*key[:-1], key.last_used_on or "never") for key in api_keys.listing(database)]
    width = max(len(name) for name, *_ in [("NAME",), *rows])
    for name, last_four, created_at, last_used_on in [("NAME", "LAST FOUR", "MADE", "LAST USED"), *rows]:
        click.echo(f"{name:<{width}}  {last_four:<9}  {created_at:<20}  {last_used_on}")


@keys.command("regenerate")
@click.argument("name")
def regenerate_key(name: str) -> None:
    """Replace the key called NAME by a new one and print that. The old one is dead at once."""
    with opened() as database:
        api_keys.check_known(database, name)
        put_in_force(database, api_keys.replace, name)


@keys.command("revoke")
@click.argument("name")
def revoke_key(name: str) -> None:
    """Revoke the key called NAME. It is dead at once."""
    with opened() as database:
        database.write(api_keys.remove, name)


@contextmanager
def opened(create: bool = False) -> Iterator[Database]:
    """Open the database that the environment names for a while."""
    engine = Sqlite(Config.from_environ(os.environ).database)
    engine.open(create)
    try:
        yield Database(engine)
    finally:
        engine.close()


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


def show(text: str) -> None:
    """Print what is shown only once; raise OSError if that cannot be done."""
    if sys.stdout is None:
        raise OSError("standard output is closed: nothing was changed")
    try:
        click.echo(text)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again when it exits
        raise OSError(f"cannot write to standard output: {error.strerror}; nothing was changed") from error
