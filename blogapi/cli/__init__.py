"""The command line, whose commands work whether or not a server is running."""

from blogapi.cli.commands import command_line, main

__all__ = ["command_line", "main"]
