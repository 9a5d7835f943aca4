"""The command line: `blogapi init` and `blogapi keys …`, beside the running server or without one."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
from flask import Flask
from peewee import PeeweeException

from blogapi.auth import digest_of, new_key
from blogapi.clock import rfc3339
from blogapi.config import Config
from blogapi.db import database
from blogapi.models import ApiKey
from blogapi.openapi import describe
from blogapi.views import blueprint

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
    except (OSError, PeeweeException, ValueError) as error:
        sys.exit(f"blogapi: {error}")


@click.group(name="blogapi")
def commands() -> None:
    """Look after a blogapi database. BLOGAPI_DATABASE names it."""


@commands.command()
def init() -> None:
    """Set up the database where there is none, with a first key; bring an older one up to date."""
    config = Config.from_environ(os.environ)
    if database.open(config.database):
        host = "127.0.0.1" if config.host in ("0.0.0.0", "::") else config.host
        url = f"http://[{host}]:{config.port}" if ":" in host else f"http://{host}:{config.port}"
        add_key(
            "first", lambda key: WELCOME.format(database=config.database, key=key, curl=CURL.format(url=url, key=key))
        )


@commands.command()
@click.argument("file", type=click.Path(path_type=Path))
def backup(file: Path) -> None:
    """Write a consistent copy of the database to FILE, also beside a running server. FILE must not exist yet."""
    open_database()
    try:
        database.backup(file)
    except OSError as error:
        raise ValueError(f"cannot write the backup {file}: {error.strerror}") from error


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
    open_database(create=True)
    add_key(name)


@keys.command("list")
def list_keys() -> None:
    """List the keys: name, last four characters, when made, day of the last use."""
    open_database()
    rows = [("NAME", "LAST FOUR", "MADE", "LAST USED")]
    rows += [(key.name, key.last_four, key.created_at, key.last_used_on or "never") for key in ApiKey.listing()]
    width = max(len(row[0]) for row in rows)
    for name, last_four, created_at, last_used_on in rows:
        click.echo(f"{name:<{width}}  {last_four:<9}  {created_at:<20}  {last_used_on}")


@keys.command("regenerate")
@click.argument("name")
def regenerate_key(name: str) -> None:
    """Replace the key called NAME by a new one and print that. The old one is dead at once."""
    open_database()
    key = new_key()

    def renew() -> None:
        ApiKey.renew(name, digest_of(key), key[-4:], rfc3339(time.time()))
        show(key)

    database.write(renew)


@keys.command("revoke")
@click.argument("name")
def revoke_key(name: str) -> None:
    """Revoke the key called NAME. It is dead at once."""
    open_database()
    database.write(lambda: ApiKey.remove(name))


def open_database(create: bool = False) -> None:
    """Open the database that the environment names."""
    database.open(Config.from_environ(os.environ).database, create)


def add_key(name: str, text: Callable[[str], str] = str) -> None:
    """Create a key and show it, in `text`."""
    key = new_key()

    def add() -> None:
        ApiKey.add(name, digest_of(key), key[-4:], rfc3339(time.time()))
        show(text(key))

    database.write(add)


def show(text: str) -> None:
    """Print what is shown only once. Called before the commit: a key that was not shown is not made."""
    if sys.stdout is None:
        raise OSError("standard output is closed: nothing was changed")
    try:
        click.echo(text)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again when it exits
        raise OSError(f"cannot write to standard output: {error.strerror}; nothing was changed") from error
