"""The command line, beside the running server or without one."""

import json
import sys

import click
from flask import Flask

from blogapi.cli.database import backup, copy_database, init, serve
from blogapi.cli.keys import keys
from blogapi.cli.settings import settings
from blogapi.cli.transfer import export_posts, import_posts
from blogapi.storage.errors import Unavailable
from blogapi.web.openapi.description import describe
from blogapi.web.views import blueprint


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
def openapi() -> None:
    """Print the description of the API (OpenAPI 3.1), as the server has it at /openapi.json."""
    app = Flask(__name__)
    app.register_blueprint(blueprint)
    click.echo(json.dumps(describe(app), indent=2))


for command in (init, serve, backup, copy_database, keys, settings, import_posts, export_posts):
    commands.add_command(command)
