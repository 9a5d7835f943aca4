"""Copy the database: the commands `backup`, which also removes old backups, and `copy`."""

import os
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

import click

from blogapi import copy
from blogapi.cli.commands import given_path, opened, with_progress
from blogapi.cli.images import given_url
from blogapi.config import Config
from blogapi.engines import engine_for
from blogapi.storage.database import Database
from blogapi.storage.engine import Engine, Transaction
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Backup

BACKUP_NAME = "blog-%Y-%m-%dT%H-%M-%SZ.db"
PERIOD_FORMATS = {"d": "%Y-%m-%d", "w": "%G-%V", "m": "%Y-%m", "y": "%Y"}  # days, weeks, months, years
PING_SECONDS = 10
ABANDONED_SECONDS = 3600  # an unfinished backup counts as abandoned if its file has not grown for this long


def periods(value: str) -> dict[str, int]:
    """Parse --keep. Return how many backups to keep for each unit in PERIOD_FORMATS."""
    if not re.fullmatch("([1-9][0-9]{0,3}[dwmy](,|$))+", value) or value.endswith(","):
        raise click.BadParameter("must be numbers of days, weeks, months or years, such as 7d,4w,12m")
    return {period[-1]: int(period[:-1]) for period in value.split(",")}


def superfluous(names: Iterable[str], periods: Mapping[str, int]) -> set[str]:
    """Return the names of the backups to remove: all except the newest one and the last one in each recent period."""
    moments = {name: moment for name in sorted(names) if (moment := time_of(name))}
    kept = {*[*moments][-1:]}
    for unit, count in periods.items():
        latest = {moment.strftime(PERIOD_FORMATS[unit]): name for name, moment in moments.items()}
        kept.update([*latest.values()][-count:])
    return moments.keys() - kept


def time_of(name: str) -> datetime | None:
    """Return the time in the name of a backup, or None if it is not the name of a backup."""
    with suppress(ValueError):
        moment = datetime.strptime(name, BACKUP_NAME)
        return moment if moment.strftime(BACKUP_NAME) == name else None
    return None


def file_or_folder(value: str) -> Path:
    """Return a path. Refuse one that ends in a slash if the folder is missing: Path would drop the slash."""
    path = given_path(value)
    if value.endswith("/") and not path.is_dir():
        raise click.BadParameter("must be an existing folder, because it ends in /")
    return path


@click.command()
@click.argument("path", type=file_or_folder, metavar="FILE|DIR")
@click.option(
    "--keep",
    metavar="7d,4w,12m",
    type=periods,
    help="Remove old backups from DIR, but keep, for example, the last one of each of 7 days, 4 weeks and 12 months.",
)
@click.option("--quiet", is_flag=True, help="Print nothing unless the backup fails.")
@click.option(
    "--touch", type=click.Path(dir_okay=False, path_type=Path), help="Touch this file after a successful backup."
)
@click.option("--ping", metavar="URL", type=given_url, help="Request this URL after a successful backup.")
def backup(path: Path, keep: dict[str, int] | None, quiet: bool, touch: Path | None, ping: str | None) -> None:
    """Write a consistent copy of the database to FILE, or to a new file in DIR.

    FILE must not exist yet, and DIR must exist. A file in DIR is named after the current time. The copy is checked for
    damage. The server can keep running.
    """
    if keep and not path.is_dir():
        raise click.BadParameter("must be an existing folder, because --keep is given", param_hint="'DIR'")
    is_folder = path.is_dir()
    file = path / datetime.now(UTC).strftime(BACKUP_NAME) if is_folder else path
    engine = engine_for(Config.from_environ(os.environ).database)
    try:
        remove_unfinished(file)
        copy.backup(engine, file)
    except OSError as error:
        raise OSError(f"cannot write the backup {file}: {error.strerror}") from error
    record(engine)
    old: set[str] = set()
    if keep:
        names = [entry.name for entry in os.scandir(path) if entry.is_file(follow_symlinks=False)]
        old = superfluous(names, keep) - {file.name}  # If the clock was once ahead, other backups have later names.
    for name in old:
        (path / name).unlink()
    if is_folder and not quiet:
        removed = f"; removed {len(old)} old {'one' if len(old) == 1 else 'ones'}" if keep else ""
        click.echo(f"wrote {file}, {file.stat().st_size:,} bytes{removed}")
    if touch:
        touch.touch()
    if ping:
        call(ping)


def remove_unfinished(file: Path) -> None:
    """Remove the unfinished files that interrupted backups have left in the folder."""
    for part in file.parent.glob("*.part"):
        name = part.name.removesuffix(".part").rpartition(".")[0]
        is_backup = name == file.name or time_of(name)
        if is_backup and part.stat().st_mtime < time.time() - ABANDONED_SECONDS:
            part.unlink()


def record(engine: Engine) -> None:
    """Record the time of a backup for the metrics. If this fails, only print a message: the backup is valid."""
    try:
        engine.open(create=False)
        with closing(engine):
            Database(engine).write(replace_time)
    except Unavailable as error:
        click.echo(f"The backup was written, but its time could not be recorded: {error}", err=True)


def replace_time(tx: Transaction) -> None:
    tx.execute(Backup.delete())
    tx.execute(Backup.insert(id=1, made_at=tx.now))


def call(url: str) -> None:
    """Request a URL. Raises OSError if this fails."""
    try:
        urlopen(url, timeout=PING_SECONDS).close()
    except (HTTPException, OSError) as error:
        raise OSError(f"the backup was written, but {url} did not respond: {error}") from error


@click.command("copy")
@click.argument("target")
def copy_database(target: str) -> None:
    """Copy the whole database to TARGET.

    TARGET is a file that does not exist yet, or the URL of an empty PostgreSQL database. Stop the server first, because
    writes during the copy are not copied. After an interruption, repeat the command.
    """
    to = engine_for(Config.from_environ({"BLOGAPI_DATABASE": target}).database)
    with opened() as database:
        try:
            copy.copy(database.engine, to, with_progress)
        except OSError as error:
            raise OSError(f"cannot write the database {to.name}: {error.strerror}") from error
    click.echo(f"copied {database.engine.name} to {to.name}")
