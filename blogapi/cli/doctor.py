"""The commands that check an installation and describe its API."""

import json
import os
import shutil
import stat
import sys
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

import click
from flask import Flask

from blogapi.cli.commands import opened
from blogapi.config import Config
from blogapi.storage import stored
from blogapi.storage.errors import Unavailable
from blogapi.web.openapi import describe
from blogapi.web.views import blueprint

ROOM_BYTES = 100 * 1024 * 1024
OTHERS = stat.S_IRWXG | stat.S_IRWXO
LOCAL = ("127.0.0.1", "::1", "localhost")


@click.command()
def openapi() -> None:
    """Print the description of the API (OpenAPI 3.1).

    It is what the server has at /openapi.json.
    """
    app = Flask(__name__)
    app.register_blueprint(blueprint)
    click.echo(json.dumps(describe(app), indent=2))


@click.command()
def doctor() -> None:
    """Check the installation.

    Prints a line for each check; the exit status is 1 if something is wrong.
    """
    config = Config.from_environ(os.environ)
    is_file = isinstance(config.database, Path) and config.database.exists()
    checks = (FILE_CHECKS if is_file else {}) | CHECKS
    failed = False
    for name, check in checks.items():
        try:
            result = f"ok, {check(config)}"
        except (OSError, Unavailable, ValueError) as error:
            failed = True
            result = f"WRONG: {error}"
        click.echo(f"{name}: {result}")
    sys.exit(1 if failed else 0)


def _database(config: Config) -> str:
    with opened() as database:
        database.check()
        return database.engine.name


def _permissions(config: Config) -> str:
    if config.database.stat().st_mode & OTHERS:
        raise ValueError(f"other users can read the database: chmod 600 {config.database}")
    for path in (config.database, config.database.absolute().parent):
        if not os.access(path, os.R_OK | os.W_OK):
            raise ValueError(f"this user cannot write {path}")
    return "the database is for its owner only"


def _space(config: Config) -> str:
    free = shutil.disk_usage(config.database.absolute().parent).free
    needed = max(ROOM_BYTES, config.database.stat().st_size)
    if free < needed:
        raise ValueError(f"{free // 1024**2:,} MiB are free; a backup needs {needed // 1024**2:,}")
    return f"{free // 1024**2:,} MiB are free"


def _clock(config: Config) -> str:
    with opened() as database:
        if latest := stored.later_than_now(database):
            raise ValueError(f"it is {database.now}, but a post is from {latest}")
        return database.now


def _url(config: Config) -> str:
    try:
        with urlopen(f"{config.url}/healthz", timeout=5) as answer:
            answer.read()
    except HTTPException:
        raise ValueError(f"{config.url}/healthz: the answer is not HTTP; is the server running?") from None
    except URLError as error:
        reason = getattr(error.reason, "strerror", None) or error.reason
        raise ValueError(f"{config.url}/healthz: {reason}; is the server running?") from None
    return config.url


def _proxies(config: Config) -> str:
    url = urlsplit(config.url)
    if url.hostname in LOCAL or config.trusted_proxies:
        return "trusted" if config.trusted_proxies else "none"
    if url.scheme == "http":
        raise ValueError("BLOGAPI_URL is http: keys cross the network in clear text; put a proxy with TLS in front")
    raise ValueError("BLOGAPI_TRUSTED_PROXIES is not set: the log has the proxy's address instead of the clients'")


FILE_CHECKS = {"permissions": _permissions, "free space": _space}
CHECKS = {"database": _database, "clock": _clock, "BLOGAPI_URL": _url, "proxies": _proxies}
