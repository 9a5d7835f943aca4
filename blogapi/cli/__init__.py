"""The command line, with or without a running server."""

from blogapi.cli.commands import command_line, main

__all__ = ["command_line", "main"]
