"""Manage the service from the command line, whether or not a server is running."""

from blogapi.cli.commands import command_line, main

__all__ = ["command_line", "main"]
