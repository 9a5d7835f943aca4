"""Run the command line, with its commands for the server, the settings and the API keys."""

import io
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, redirect_stderr
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import Any, get_args

import click

import blogapi
from blogapi import env_file
from blogapi.config import CLIENT_VARIABLES, NOT_A_FILE, POSTGRESQL, Config, LogFormat, LogLevel, is_loopback
from blogapi.engines import engine_for
from blogapi.server.start import SETTINGS, refuse_taken_address
from blogapi.storage import keys as api_keys
from blogapi.storage.database import Database
from blogapi.storage.errors import BadKeyName, Unavailable
from blogapi.storage.models import DRAFTS_ONLY, FULL, PUBLISHED_ONLY, READ_ONLY

# Import these commands only when they are called. The others start faster without the Markdown and HTML parsers.
LAZY = {
    "backup": "blogapi.cli.backup:backup",
    "copy": "blogapi.cli.backup:copy_database",
    "doctor": "blogapi.cli.doctor:doctor",
    "export": "blogapi.cli.transfer:export_posts",
    "import": "blogapi.cli.transfer:import_posts",
    "images": "blogapi.cli.images:list_images",
    "login": "blogapi.cli.owner:login",
    "pull": "blogapi.cli.sync:pull",
    "push": "blogapi.cli.sync:push",
    "status": "blogapi.cli.sync:status",
    "undo": "blogapi.cli.undo:undo_posts",
}
# Imports blogapi before gunicorn puts the current folder first in sys.path. Otherwise, a folder called blogapi in the
# current folder would hide the package.
GUNICORN = "import blogapi; from gunicorn.app.wsgiapp import run; run(prog='gunicorn')"
SECRET_NAME = re.compile(r"BLOGAPI_KEY|PG\w*PASSWORD")
SECRET = re.compile(r"(?<=//)([^:/?]*:).*(?=@)|(password=)[^&]*", re.IGNORECASE | re.DOTALL)  # a password in a URL
GENERATED_SECRET = re.compile(rf"{api_keys.KEY_PATTERN}|whsec_[\w+/=-]+")  # an API key, or the secret of a webhook
EXIT_STATUSES = "Exit status: 0 for success, 1 for a failure, 2 for wrong usage, unless the command says otherwise."
FOLDER_PATH = click.Path(exists=True, file_okay=False, path_type=Path)
STATIC_HELP = "Folder with the images whose URLs begin with a slash."
STATIC_OPTION = click.option("--static", metavar="DIR", type=FOLDER_PATH, help=STATIC_HELP)
ITEMS_A_LINE = 1000  # without a terminal, print one line of progress per this many items
WELCOME = """\
{database} is ready. Its first key, which is shown only once:

    {key}

Once the server is running, this command creates a post:

    curl {url}/v1/posts -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' \
-d '{{"title": "Hello", "content": "My first post.", "status": "published"}}'
"""


class Group(click.Group):
    """A group that adds the exit statuses to the help of its commands."""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if command := super().get_command(ctx, name):
            command.epilog = EXIT_STATUSES
        return command


class LazyGroup(Group):
    """The group of all commands. It reads the settings file and imports the commands in LAZY only when necessary."""

    def invoke(self, ctx: click.Context) -> Any:
        if not {*ctx.args}.intersection(ctx.help_option_names):  # Show the help even if the settings file is invalid.
            ctx.obj = env_file.load(ctx.params["config"])
        return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *LAZY})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        name = {"settings": "login"}.get(name, name)  # its earlier name
        if name in LAZY and name not in self.commands:
            self.add_command(resolve_name(LAZY[name]))
        return super().get_command(ctx, name)


@click.group(name="blogapi", cls=LazyGroup, epilog=EXIT_STATUSES)
@click.option("--config", metavar="FILE", help="The settings file to use instead of /etc/blogapi.env or ./.env.")
@click.version_option(package_name="blogapi", message="%(package)s %(version)s")
def command_line(config: str | None) -> None:
    """Run blogapi, and manage its database (BLOGAPI_DATABASE, by default blog.db)."""


def main() -> None:
    """Run the command line. After a failure, print one line without secrets, and exit with status 1."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # Standard output is None if it is closed.
        sys.stdout.reconfigure(errors="replace")  # A title can contain characters that the locale cannot encode.
    try:
        sys.exit(command_line(standalone_mode=False))
    except click.Abort:
        sys.exit("Aborted!")
    except click.ClickException as error:
        message = io.StringIO()
        error.show(message)
        click.echo(GENERATED_SECRET.sub("…", message.getvalue()), nl=False, err=True)
        sys.exit(error.exit_code)
    except (OSError, Unavailable, ValueError) as error:
        sys.exit(GENERATED_SECRET.sub("…", f"blogapi: {error}"))


@contextmanager
def opened(create: bool = False) -> Iterator[Database]:
    """Open the configured database during a block. Raises the same exceptions as `Engine.open`."""
    config = Config.from_environ(os.environ)
    engine = engine_for(config.database)
    engine.open(create)
    with closing(engine):
        yield Database(engine, keeps_history=config.keep_days > 0)


def show(text: str) -> None:
    """Print a string that is shown only once. Raises OSError if printing fails."""
    if sys.stdout is None:
        raise OSError("standard output is closed: nothing was changed")
    try:
        click.echo(text)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Otherwise, Python would try again at exit.
        raise OSError(f"cannot write to standard output: {error.strerror}; nothing was changed") from error


def with_progress(results: Iterable[Any], length: int, also: Callable[[], str] = lambda: "") -> Iterator[Any]:
    """Yield the results, and show the progress and the text of `also`: on a terminal as a bar, elsewhere as lines."""
    if sys.stderr.isatty():
        with click.progressbar(results, length, file=sys.stderr, item_show_func=lambda _: also()) as bar:
            yield from bar
        return
    for number, result in enumerate(results, 1):
        yield result
        if number % ITEMS_A_LINE == 0:
            click.echo(f"{number} of {length}{also()}", err=True)


def given_path(value: str) -> Path:
    """Return a path. Refuse "", the value of an unset shell variable: Path would turn it into the current folder."""
    if not value:
        raise click.BadParameter("must not be empty")
    return Path(value)


@command_line.command()
def init() -> None:
    """Set up the database, and print a first key if it has none."""
    with opened(create=True) as database:
        if not api_keys.listing(database, 1):  # also true if an earlier first key could not be shown
            key, url = api_keys.new_key(), Config.from_environ(os.environ).base_url
            show(WELCOME.format(database=database.engine.name, key=key, url=url))
            database.write(api_keys.add, "first", key)


@command_line.command()
@click.option("--host", help="The address to listen on. Overrides HOST.")
@click.option("--port", help="The port to listen on. Overrides PORT.")
@click.option("--existing", is_flag=True, help="Fail if the database is missing or empty (BLOGAPI_CREATE=false).")
@click.option("--log-level", type=click.Choice(get_args(LogLevel)), help="The lowest level to log (BLOGAPI_LOG_LEVEL).")
@click.option("--log-format", type=click.Choice(get_args(LogFormat)), help="The log format (BLOGAPI_LOG_FORMAT).")
def serve(host: str | None, port: str | None, existing: bool, log_level: str | None, log_format: str | None) -> None:
    """Set up the database as init does, and run the server."""
    options = {"HOST": host, "PORT": port, "BLOGAPI_CREATE": "false" if existing else None}
    options |= {"BLOGAPI_LOG_LEVEL": log_level, "BLOGAPI_LOG_FORMAT": log_format}
    os.environ.update({name: value for name, value in options.items() if value is not None})
    config = Config.from_environ(os.environ)
    refuse_taken_address(config.host, config.port)  # before `init`, which shows the first key only once
    if config.create:
        click.get_current_context().invoke(init)
    url, program = config.base_url, "blogapi" if shutil.which("blogapi") else os.path.relpath(sys.argv[0])
    click.echo(f"The owner's page is {url}/settings: {program} login prints a link that opens it.", err=True)
    if is_loopback(url):
        click.echo(f"Image URLs begin with {url}: set BLOGAPI_URL before others see the images.", err=True)
    # Replace this process, because it has imported modules that gevent must patch first.
    os.execv(sys.executable, [sys.executable, "-P", "-c", GUNICORN, "--config", SETTINGS])


@command_line.command("config")
@click.pass_obj
def show_config(source: tuple[str, set[str]]) -> None:
    """Print each setting with its source and its value. Passwords and keys are masked."""
    path, from_file = source
    defaults = dict.fromkeys(CLIENT_VARIABLES, "") | {name: field.default for name, field in Config.variables().items()}
    for name in [*defaults, *sorted(from_file - defaults.keys())]:
        value = os.environ.get(name, _as_setting(defaults.get(name)))
        origin = path if name in from_file else "environment" if name in os.environ else "default"
        if name == "BLOGAPI_DATABASE" and not value.startswith(POSTGRESQL):
            value = "…" if NOT_A_FILE.match(value) else os.path.abspath(value)
        value = "…" if SECRET_NAME.fullmatch(name) and value != "none" else SECRET.sub(r"\1\2…", value)
        click.echo(f"{name:<28}  {origin:<{max(11, len(path))}}  {value if value.isprintable() else repr(value)}")
    Config.from_environ(os.environ)  # reports invalid settings


def _as_setting(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return str(default) if default or default == 0 else "none"


@command_line.command()
def openapi() -> None:
    """Print the description of the API (OpenAPI 3.1)."""
    with TemporaryDirectory() as folder:
        with redirect_stderr(None):  # hides the log message about the new temporary database
            app = blogapi.create_app(Config(database=Path(folder, "blog.db")))
        click.echo(app.test_client().get("/openapi.json").data)
        app.extensions["blogapi"].database.close()


@command_line.group(cls=Group)
def keys() -> None:
    """Create, list, regenerate and revoke API keys."""


@keys.command("create")
@click.argument("name")
@click.option("--read-only", is_flag=True, help=f"The key may only {api_keys.may(READ_ONLY)}.")
@click.option("--published-only", is_flag=True, help=f"The key may only {api_keys.may(PUBLISHED_ONLY)}.")
@click.option("--drafts-only", is_flag=True, help=f"For agents: the key may only {api_keys.may(DRAFTS_ONLY)}.")
def create_key(name: str, read_only: bool, published_only: bool, drafts_only: bool) -> None:
    """Create a key called NAME, and print it. The key is shown only once."""
    flags = {PUBLISHED_ONLY: published_only, READ_ONLY: read_only, DRAFTS_ONLY: drafts_only}
    scopes = [scope for scope, is_given in flags.items() if is_given] or [FULL]
    if len(scopes) > 1:
        raise click.UsageError(f"a key has one scope: choose one of --{', --'.join(scopes)}")
    _show_and_store(name, api_keys.check_free, partial(api_keys.add, scope=scopes[0]))


@keys.command("list")
def list_keys() -> None:
    """List all keys."""
    with opened() as reader:
        rows = [("NAME", "LAST FOUR", "CREATED", "LAST USED", "SCOPE"), *(key[:5] for key in api_keys.listing(reader))]
    width = max(len(name) for name, *_ in rows)
    for name, last_four, created_at, used, scope in rows:
        click.echo(f"{name:<{width}}  {last_four:<9}  {created_at:<20}  {used or 'never':<10}  {scope}")


@keys.command("regenerate")
@click.argument("name")
def regenerate_key(name: str) -> None:
    """Replace the key called NAME, and print the new key. The old key stops working at once."""
    _show_and_store(name, api_keys.check_known, api_keys.regenerate)


@keys.command("revoke")
@click.argument("name")
def revoke_key(name: str) -> None:
    """Revoke the key called NAME. The key stops working at once."""
    with opened() as database:
        database.write(api_keys.revoke, name)
        click.echo(f"revoked {name} in {database.engine.name}")


def _show_and_store(name: str, check: Callable, write: Callable) -> None:
    """Show a new key before storing it, so that every stored key has been shown.

    The key is shown before the transaction begins. Otherwise, a paused terminal (Ctrl-S) would keep the transaction
    open.
    """
    with opened() as database:
        check(database, name)
        key = api_keys.new_key()
        show(key)
        try:
            database.write(write, name, key)
        except (BadKeyName, Unavailable) as error:
            raise ValueError(f"the key above is not valid: {error}") from error
