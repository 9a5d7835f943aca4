"""The command line, with or without a running server."""

import sys
from pkgutil import resolve_name

import click

from blogapi.storage.errors import Unavailable

LIGHT, HEAVY = "blogapi.cli.commands", "blogapi.cli.transfer"
COMMANDS = {
    "init": f"{LIGHT}:init",
    "serve": f"{LIGHT}:serve",
    "backup": f"{LIGHT}:backup",
    "copy": f"{LIGHT}:copy_database",
    "keys": f"{LIGHT}:keys",
    "settings": f"{LIGHT}:settings",
    "import": f"{HEAVY}:import_posts",
    "export": f"{HEAVY}:export_posts",
    "undo": f"{HEAVY}:undo_changes",
    "doctor": "blogapi.cli.doctor:doctor",
    "openapi": f"{HEAVY}:openapi",
}


class LazyGroup(click.Group):
    """Commands that are imported when they are called: most need neither Flask nor a parser of HTML."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        return resolve_name(COMMANDS[name]) if name in COMMANDS else None


@click.group(name="blogapi", cls=LazyGroup)
@click.version_option(package_name="blogapi", message="%(package)s %(version)s")
def command_line() -> None:
    """Look after a blogapi database. BLOGAPI_DATABASE names it."""


def main() -> None:
    """Run the command line; a failure is one line and the exit status 1."""
    try:
        command_line()
    except (OSError, Unavailable, ValueError) as error:
        sys.exit(f"blogapi: {error}")
