"""What the command line shows: what is shown only once, and how far it has come."""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

import click

ITEMS_A_LINE = 1000

T = TypeVar("T")


def show(text: str) -> None:
    """Print what is shown only once; raise OSError if that cannot be done."""
    if sys.stdout is None:
        raise OSError("standard output is closed: nothing was changed")
    try:
        click.echo(text)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again when it exits
        raise OSError(f"cannot write to standard output: {error.strerror}; nothing was changed") from error


def with_progress(results: Iterable[T], length: int) -> Iterator[T]:
    """Show how far it has come: a bar on a terminal, else a line now and then."""
    if sys.stderr.isatty():
        with click.progressbar(results, length, file=sys.stderr) as bar:
            yield from bar
        return
    for number, result in enumerate(results, 1):
        yield result
        if number % ITEMS_A_LINE == 0:
            click.echo(f"{number} of {length}", err=True)
