"""The command about the owner's page: settings."""

import os

import click

from blogapi.cli.database import opened
from blogapi.cli.output import show
from blogapi.config import Config
from blogapi.storage import sessions


@click.command()
@click.option("--end", is_flag=True, help="End all sessions, and the links that nobody has used.")
def settings(end: bool) -> None:
    """Print a link to the owner's page. It works once, for ten minutes, and opens a session of twelve hours."""
    url = Config.from_environ(os.environ).url
    with opened() as database:
        if end:
            database.write(sessions.end_all)
        else:
            show(f"{url}/settings/open?link={database.write(sessions.add_link)}")
