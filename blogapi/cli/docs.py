"""The command that prints the description of the API."""

from contextlib import redirect_stderr
from pathlib import Path
from tempfile import TemporaryDirectory

import click

import blogapi
from blogapi.config import Config


@click.command()
def openapi() -> None:
    """Print the description of the API (OpenAPI 3.1)."""
    with TemporaryDirectory() as folder:
        with redirect_stderr(None):  # Nobody needs to hear of this database.
            app = blogapi.create_app(Config(database=Path(folder, "blog.db")))
        click.echo(app.test_client().get("/openapi.json").data)
        app.extensions["blogapi"].database.close()
