"""The command line, with or without a running server."""

import sys
from pkgutil import resolve_name

import click

from blogapi.storage.errors import Unavailable

# The module and the function of each command.
COMMANDS = {
    "init": "commands:init",
    "serve": "commands:serve",
    "backup": "commands:backup",
    "copy": "commands:copy_database",
    "keys": "commands:keys",
    "settings": "commands:settings",
    "import": "transfer:import_posts",
    "export": "transfer:export_posts",
    "undo": "transfer:undo_changes",
    "doctor": "commands:doctor",
    "openapi": "commands:openapi",
}


class LazyGroup(click.Group):
    """Commands that are imported when they are called: most need neither Flask nor a parser of HTML."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        return resolve_name(f"blogapi.cli.{COMMANDS[name]}") if name in COMMANDS else None


@click.group(name="blogapi", cls=LazyGroup)
@click.version_option(package_name="blogapi", message="%(package)s %(version)s")
def command_line() -> None:
    """Manage a blogapi database. BLOGAPI_DATABASE names it."""


def main() -> None:
    """Run the command line; a failure is one line and the exit status 1."""
    try:
        command_line()
    except (OSError, Unavailable, ValueError) as error:
        sys.exit(f"blogapi: {error}")
