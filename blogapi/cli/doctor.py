"""Check the installation: the command `doctor`."""

import os
import platform
import pwd
import re
import shutil
import sys
import sysconfig
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import click
from peewee import SQL

from blogapi.cli.commands import opened
from blogapi.config import Config, is_loopback
from blogapi.posts import publication
from blogapi.search import index
from blogapi.server.start import GROUP_AND_OTHERS, url_of_server
from blogapi.storage.errors import Unavailable
from blogapi.storage.setup import SCHEMA, section
from blogapi.wings.images import storage as images

ROOM_BYTES = 100 * 1024 * 1024  # at least this much disk space must be free, even for a small database
INDEX = re.compile(r"^CREATE (?:UNIQUE )?INDEX (\w+)", re.MULTILINE)
INDEXES = {"sqlite": "SELECT name FROM sqlite_master", "postgresql": "SELECT indexname FROM pg_indexes"}


@click.command()
def doctor() -> None:
    """Check the installation.

    Print one line for each check. If something is wrong, the exit status is 1. The command creates and changes nothing.
    """
    config = Config.from_environ(os.environ)
    failed: set[str] = set()
    for name, check in ((FILE_CHECKS if _has_file(config) else {}) | DATABASE_CHECKS | CHECKS).items():
        if failed & {"access", "database"} and name not in CHECKS:
            continue  # These checks would only report the same fault again.
        try:
            click.echo(f"{name}: ok, {check(config)}")
        except (OSError, Unavailable, ValueError) as error:
            click.echo(f"{name}: WRONG: {error}")
            failed.add(name)
    sys.exit(1 if failed else 0)


def _has_file(config: Config) -> bool:
    """Return whether the database is an existing file, or may be one in a folder that this user cannot enter."""
    if not isinstance(config.database, Path):
        return False
    folder = config.database.absolute().parent
    return config.database.is_file() if os.access(folder, os.X_OK) else folder.exists()


def _database(config: Config) -> str:
    with opened() as database:
        database.check()
        if database.engine.dialect == "sqlite" and (damage := database.one(SQL("PRAGMA quick_check(1)"))[0]) != "ok":
            raise ValueError(f"{database.engine.name} is damaged: {damage.splitlines()[-1]}; restore a backup")
        indexes = {name for (name,) in database.rows(SQL(INDEXES[database.engine.dialect]))}
        if missing := {*INDEX.findall(section(SCHEMA, "")[0])} - indexes:
            raise ValueError(f"index {min(missing)} is missing: blogapi copy creates a copy with the index restored")
        return database.engine.name


def python_build(config: Config | None = None) -> str:
    """Return the version of Python, with a note if its build is slow. `make install` also prints this."""
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    # The Python in /usr comes from a distribution, and distributions optimize it.
    is_optimized = sys.base_prefix == "/usr" or "--enable-optimizations" in options
    slow = ", built without --enable-optimizations: requests take 10 to 30% more processor time"
    return platform.python_version() + ("" if is_optimized else slow)


def _access(config: Config) -> str:
    file = Path(config.database).absolute()
    files = [path for path in (file, *map(Path, (f"{file}-wal", f"{file}-shm"))) if os.path.exists(path)]
    of_service = file.stat().st_uid or file.parent.stat().st_uid  # presumably the user that runs the service
    for path in (file.parent, *files):
        user, owner = os.geteuid(), path.stat().st_uid
        is_usable = os.access(path, os.R_OK | os.W_OK | (os.X_OK if path == file.parent else 0))
        if is_usable and not user and path != file.parent:  # Root can use every file, so check the service's user.
            user, is_usable = of_service, owner == of_service
        if is_usable:
            continue
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            raise ValueError(f"{path} is on a file system that is mounted read-only")
        fix = f"chmod u+rwX {path}" if owner == user else f"it belongs to {_name(owner)}: chown {_name(user)} {path}"
        raise ValueError(f"{_name(user)} cannot read and write {path}; {fix}")
    return f"{_name(os.geteuid())} can read and write the database"


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def _permissions(config: Config) -> str:
    if Path(config.database).stat().st_mode & GROUP_AND_OTHERS:
        raise ValueError(f"other users can read the database: chmod 600 {config.database}")
    return "only its owner can access the database"


def _space(config: Config) -> str:
    file = Path(config.database)
    free = shutil.disk_usage(file.absolute().parent).free
    needed = max(ROOM_BYTES, file.stat().st_size)
    if free < needed:
        raise ValueError(f"only {free // 1024**2:,} MiB is free; a backup needs {needed // 1024**2:,} MiB")
    return f"{free // 1024**2:,} MiB is free"


def _contents(config: Config) -> str:
    with opened() as database:
        tables = "post", "revision", "api_key"
        posts, kept, keys = (database.one(SQL(f"SELECT count(*) FROM {table}"))[0] for table in tables)
        counted = "1 post" if posts == 1 else f"{posts:,} posts"
        summary = counted if posts or kept else f"no posts yet: {database.engine.name} is new"
    if not keys:
        raise ValueError(f"{summary}, but no API key: run blogapi keys create NAME")
    return summary


def _clock(config: Config) -> str:
    with opened() as database:
        if latest := publication.latest_in_future(database):
            raise ValueError(f"it is {database.now}, but a post is dated {latest}; correct the clock or that date")
        return database.now


def _search(config: Config) -> str:
    with opened() as database:
        percent = index.indexed_percent(database)
    return "all posts are indexed" if percent is None else f"{percent}% of the posts have been indexed again so far"


def _images(config: Config) -> str:
    with opened() as database:
        used = images.total_bytes(database) / 1024**2
    if used > config.images_mb * 0.95 and config.images_mb:
        raise ValueError(f"{used:,.0f} of {config.images_mb:,} MiB is used; raise BLOGAPI_IMAGES_MB")
    return f"{used:,.0f} of {config.images_mb:,} MiB is used"


def _url(config: Config) -> str:
    url = url_of_server(config)
    try:
        with urlopen(f"{url}/healthz", timeout=5) as response:
            if not response.read(100).startswith(b'{"status":"ok"'):
                raise ValueError(f"{url}/healthz: the response is another program's; set PORT or BLOGAPI_URL")
            return url
    except HTTPError as error:
        other = "if this is another program, set PORT or BLOGAPI_URL"
        raise ValueError(f"{url}/healthz: {error.code} {error.reason}; see the log of the server; {other}") from None
    except (HTTPException, OSError) as error:
        cause = getattr(error, "reason", error if isinstance(error, OSError) else "the response is not HTTP")
        reason = getattr(cause, "strerror", None) or cause
        raise ValueError(f"{url}/healthz: {reason}; is the server running?") from None


def _proxies(config: Config) -> str:
    if config.trusted_proxies:
        return "trusted"
    if is_loopback(config.base_url):
        return "none"
    if config.base_url.startswith("http:"):
        raise ValueError("BLOGAPI_URL is http: keys cross the network in clear text; put a proxy with TLS in front")
    raise ValueError("BLOGAPI_TRUSTED_PROXIES is not set: the log contains the proxy's address instead of the clients'")


FILE_CHECKS = {"access": _access, "permissions": _permissions, "free space": _space}
DATABASE_CHECKS = {"database": _database, "contents": _contents, "clock": _clock, "search": _search, "images": _images}
CHECKS = {"Python": python_build, "BLOGAPI_URL": _url, "proxies": _proxies}
