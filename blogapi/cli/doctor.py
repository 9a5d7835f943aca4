"""The command that checks the installation."""

import os
import platform
import shutil
import sys
import sysconfig
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import click
from peewee import SQL

from blogapi.cli.commands import opened
from blogapi.config import Config, is_loopback
from blogapi.posts import publication
from blogapi.server.start import OTHERS, url_of_server
from blogapi.storage.errors import Unavailable
from blogapi.storage.setup import CREATED
from blogapi.wings.images import storage as images
from blogapi.wings.search import index

ROOM_BYTES = 100 * 1024 * 1024  # at least this much disk space must be free


@click.command()
def doctor() -> None:
    """Check the installation.

    Print a line for each check. The exit status is 1 if something is wrong.
    """
    config = Config.from_environ(os.environ)
    is_file = isinstance(config.database, Path) and config.database.exists()
    failed = False
    for name, check in ((FILE_CHECKS if is_file else {}) | CHECKS).items():
        try:
            click.echo(f"{name}: ok, {check(config)}")
        except (OSError, Unavailable, ValueError) as error:
            click.echo(f"{name}: WRONG: {error}")
            failed = True
    sys.exit(1 if failed else 0)


def _database(config: Config) -> str:
    with opened() as database:
        database.check()
        return database.engine.name


def python_build(config: Config | None = None) -> str:
    """Return the version of Python, and whether its build is slow. The Makefile prints this."""
    options = sysconfig.get_config_var("CONFIG_ARGS") or ""
    is_optimized = sys.base_prefix == "/usr" or "--enable-optimizations" in options  # Distributions optimize theirs.
    slow = ", built without --enable-optimizations: requests take 10 to 30 % more processor time"
    return platform.python_version() + ("" if is_optimized else slow)


def _permissions(config: Config) -> str:
    file = Path(config.database)
    if file.stat().st_mode & OTHERS:
        raise ValueError(f"other users can read the database: chmod 600 {file}")
    for path in (file, file.absolute().parent):
        if not os.access(path, os.R_OK | os.W_OK):
            raise ValueError(f"this user cannot write {path}")
    return "only its owner can access the database"


def _space(config: Config) -> str:
    file = Path(config.database)
    free = shutil.disk_usage(file.absolute().parent).free
    needed = max(ROOM_BYTES, file.stat().st_size)
    if free < needed:
        raise ValueError(f"{free // 1024**2:,} MiB are free; a backup needs {needed // 1024**2:,}")
    return f"{free // 1024**2:,} MiB are free"


def _contents(config: Config) -> str:
    with opened() as database:
        tables = "post", "revision", "api_key"
        posts, kept, keys = (database.one(SQL(f"SELECT count(*) FROM {table}"))[0] for table in tables)
        found = f"{posts:,} posts" if posts or kept else CREATED % database.engine.name
    if not keys:
        raise ValueError(f"{found}, without any key: run blogapi keys create NAME")
    return found


def _clock(config: Config) -> str:
    with opened() as database:
        if latest := publication.newest_post_in_future(database):
            raise ValueError(f"it is {database.now}, but a post is from {latest}")
        return database.now


def _search(config: Config) -> str:
    with opened() as database:
        percent = index.indexed_percent(database)
    return "all posts are indexed" if percent is None else f"{percent} % of the posts are indexed again so far"


def _images(config: Config) -> str:
    with opened() as database:
        used = images.total_bytes(database) / 1024**2
    if used > config.images_mb * 0.95 and config.images_mb:
        raise ValueError(f"{used:,.0f} of {config.images_mb:,} MiB are used; raise BLOGAPI_IMAGES_MB")
    return f"{used:,.0f} of {config.images_mb:,} MiB are used"


def _url(config: Config) -> str:
    url = url_of_server(config)
    try:
        with urlopen(f"{url}/healthz", timeout=5) as answer:
            if not answer.read(100).startswith(b'{"status":"ok"'):
                raise ValueError(f"{url}/healthz: the answer is another program's; set PORT or BLOGAPI_URL")
            return url
    except (HTTPException, URLError) as error:
        cause = getattr(error, "reason", "the answer is not HTTP")
        reason = getattr(cause, "strerror", None) or cause
        raise ValueError(f"{url}/healthz: {reason}; is the server running?") from None


def _proxies(config: Config) -> str:
    if config.trusted_proxies:
        return "trusted"
    if is_loopback(config.base_url):
        return "none"
    if config.base_url.startswith("http:"):
        raise ValueError("BLOGAPI_URL is http: keys cross the network in clear text; put a proxy with TLS in front")
    raise ValueError("BLOGAPI_TRUSTED_PROXIES is not set: the log has the proxy's address instead of the clients'")


FILE_CHECKS = {"permissions": _permissions, "free space": _space}
CHECKS = {
    "Python": python_build,
    "database": _database,
    "contents": _contents,
    "clock": _clock,
    "search": _search,
    "images": _images,
    "BLOGAPI_URL": _url,
    "proxies": _proxies,
}
