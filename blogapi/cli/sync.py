"""Sync a folder with a service: the commands `push`, `pull` and `status`."""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from datetime import tzinfo
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from blogapi.cli.commands import STATIC_OPTION, given_path, with_progress
from blogapi.config import Config
from blogapi.markdown.front_matter import shown
from blogapi.text import counted
from blogapi.wings.sync.client import NotSynced, Remote, RemoteError
from blogapi.wings.sync.compare import Comparison, differences, list_posts
from blogapi.wings.sync.folder import Result, WorkingFolder, refuse_other_folders
from blogapi.wings.sync.pull import Pull
from blogapi.wings.sync.push import Push
from blogapi.wings.sync.state import STATE, SyncState, synced_folder
from blogapi.wings.transfer.folder import MARKDOWN_SUFFIXES, Folder
from blogapi.wings.transfer.report import left_out, refused_images, say, settings_of

CHANGES = ("created", "updated", "deleted")  # outcomes to which a dry run adds "would be"
NOTABLE = (*CHANGES, "renamed", "conflict", "failed")  # outcomes that are printed even with --quiet
Starter = Callable[[Comparison], Push | Pull]


def refuse_force(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    """Refuse --force, and list the options that have replaced it."""
    if value:
        ways = "push --overwrite, push --recreate, pull --theirs, --delete-all and --move-to URL"
        raise click.UsageError(f"--force was split into several options: {ways}.")


SHARED = (
    click.argument("paths", nargs=-1, required=True, type=given_path, metavar="FOLDER [FILE]..."),
    click.option("--move-to", metavar="URL", help="The new URL of the service, if it has moved."),
    click.option("--state", metavar="FILE", type=Path, help="Keep the state in FILE, for example in a repository."),
    STATIC_OPTION,
    click.option("--no-gitignore", is_flag=True, help="Obey .blogapiignore, but not .gitignore."),
    click.option("--diff", is_flag=True, help="For each conflict, show how the file and the post differ."),
    click.option("--quiet", is_flag=True, help="Print only changes, conflicts and failures."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line."),
    click.option("--force", is_flag=True, hidden=True, expose_value=False, callback=refuse_force),
)
DRY_RUN = click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
DELETE_ALL = click.option("--delete-all", is_flag=True, help="Like --delete, even if most files or posts are gone.")


def shared(flag: str) -> Callable[[Callable], Callable]:
    """Return a decorator that adds the shared options to a command, and `flag` for the URL of the service."""
    text = "The URL of the service."
    url = click.option(flag, "url", envvar="BLOGAPI_REMOTE", metavar="URL", show_envvar=True, help=text)

    def decorate(function: Callable) -> Callable:
        for option in (url, *reversed(SHARED)):
            function = option(function)
        return function

    return decorate


@click.command()
@shared("--to")
@click.option("--delete", is_flag=True, help="Move the posts of deleted files to the trash.")
@DELETE_ALL
@click.option("--overwrite", is_flag=True, help="Send files even if their posts have changed on the service.")
@click.option("--recreate", is_flag=True, help="Recreate posts that were deleted on the service.")
@click.option("--publish", is_flag=True, help="Publish dated files from unknown programs unless something hides them.")
@DRY_RUN
def push(delete: bool, delete_all: bool, overwrite: bool, recreate: bool, **where: Any) -> None:
    """Send the changes in the Markdown files in FOLDER, or only in the given FILEs, to a service.

    The key is read from BLOGAPI_KEY. If the post of a changed file has also changed, the conflict is reported, the file
    is not sent, and the exit status is 2. After an interruption, repeat the command.
    """
    deletes = delete or delete_all
    start = partial(Push, delete=deletes, delete_all=delete_all, overwrite=overwrite, recreate=recreate)
    run(start, deletes=deletes, **where)


@click.command()
@shared("--from")
@click.option("--delete", is_flag=True, help="Remove the files of deleted posts.")
@DELETE_ALL
@click.option(
    "--theirs", is_flag=True, help="Overwrite changed files (keeping yours as NAME.mine.md), and restore deleted ones."
)
@click.option("--published", is_flag=True, help="Create no files for unpublished posts.")
@click.option("--images", is_flag=True, help="Save images in FOLDER/images, and make the files link to them.")
@DRY_RUN
def pull(delete: bool, delete_all: bool, theirs: bool, published: bool, images: bool, **where: Any) -> None:
    """Write the changes in a service's posts to the Markdown files in FOLDER, or only to the given FILEs.

    The key is read from BLOGAPI_KEY. A file that has also changed is a conflict: it is reported but not written, and
    the exit status is 2. After an interruption, repeat the command.
    """
    deletes = delete or delete_all
    start = partial(Pull, delete=deletes, delete_all=delete_all, theirs=theirs, published=published, images=images)
    run(start, creates=True, deletes=deletes, **where)


@click.command()
@shared("--from")
def status(**where: Any) -> None:
    """Print what a push and a pull of FOLDER would do."""
    run(Push, Pull, dry_run=True, **where)


@dataclass
class Output:
    """Prints the results."""

    as_json: bool
    quiet: bool
    diff: bool
    would_be: str  # "would be " in a dry run, "" otherwise

    def result(self, result: Result) -> None:
        """Print the outcome for a file or a post."""
        outcome, name, reason = result
        if outcome == "unchanged" or (self.quiet and outcome not in NOTABLE):
            return
        outcome = self.would_be * (outcome in CHANGES) + outcome
        if self.as_json:
            self.line(json.dumps({"action": outcome, "file": name, "reason": reason}))
        else:
            is_error = outcome in ("conflict", "failed", "skipped")
            self.line(f"{outcome} {name}" + (f": {reason}" if reason else ""), is_error)

    def difference(self, name: str, lines: Iterable[str]) -> None:
        """Print the differences between a file and its post."""
        for line in [json.dumps({"file": name, "difference": [*lines]})] if self.as_json else lines:
            self.line(line)

    def line(self, text: str, is_error: bool = False) -> None:
        """Print a line. Raises ValueError if this fails, because `run` would blame the folder for an OSError."""
        try:
            say(text, err=is_error)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Otherwise, Python would try again at exit.
            raise ValueError(f"cannot print the results: {error.strerror}; run the command again") from error

    def summary(self, counts: Counter[str]) -> None:
        """Print the counts. With --quiet, print them only if there was a change, a conflict or a failure."""
        if self.quiet and not any(counts[what] for what in NOTABLE):
            return
        self.line(json.dumps({"counts": counts}) if self.as_json else self.would_be + counted(counts))


def run(
    *starters: Starter,
    paths: tuple[Path, ...],
    url: str | None,
    move_to: str | None,
    deletes: bool = False,
    creates: bool = False,  # whether to create a missing folder
    **options: Any,
) -> None:
    """Push or pull or, for `status`, predict what each would do."""
    url = service_url(url, move_to, deletes)
    folder, names = folder_and_names(paths)
    output = Output(options.pop("as_json"), options.pop("quiet"), options.pop("diff"), "would be " * options["dry_run"])
    options |= {"only": names, "moves": bool(move_to)}
    with ExitStack() as stack:
        try:
            remote = Remote(url, os.environ.get("BLOGAPI_KEY", ""), say)
            if creates and not folder.exists() and remote.scope:  # Fetching `scope` makes sure that the key is valid.
                folder = Path(stack.enter_context(TemporaryDirectory())) if options["dry_run"] else folder
                folder.mkdir(parents=True, exist_ok=True)
            counts = print_results(starters, opened(stack, folder, remote, **options), output)
        except (RemoteError, NotSynced) as error:
            raise ValueError(shown(str(error))) from None
        except OSError as error:
            raise ValueError(shown(f"{folder}: {error.strerror}")) from None
    sys.exit(2 if counts["conflict"] else 1 if counts["failed"] else 0)


def service_url(url: str | None, move_to: str | None, deletes: bool) -> str:
    """Return the URL of the service, without /v1. Raises UsageError if the options do not state it."""
    if move_to and deletes:
        raise click.UsageError("--move-to and --delete cannot be combined: check the results of --move-to first.")
    if not (given := move_to or url):
        raise click.UsageError("Set BLOGAPI_REMOTE to the URL of the service.")
    return given.rstrip("/").removesuffix("/v1")


def folder_and_names(paths: tuple[Path, ...]) -> tuple[Path, frozenset[str]]:
    """Return the folder and the paths of the given files within it."""
    folder, files = paths[0], paths[1:]
    if folder.name.lower().endswith(MARKDOWN_SUFFIXES) and not folder.is_dir():
        if not (synced := synced_folder(folder.parent)):
            raise click.UsageError(f"{folder} is not in a synced folder: pass the folder to sync before the file.")
        folder, files = synced, paths  # The first argument is a file in a synced folder.
    top = os.path.realpath(folder)
    names = [os.path.relpath(os.path.join(os.path.realpath(file.parent), file.name), top) for file in files]
    if outside := [name for name in names if name.startswith("../")]:
        raise click.UsageError(f"{outside[0]} is not in {folder}.")
    return folder, frozenset(names)


def opened(
    stack: ExitStack,
    path: Path,
    remote: Remote,
    *,
    state: Path | None,
    moves: bool,  # whether the folder may have been synced with another service
    no_gitignore: bool,
    dry_run: bool,
    **options: Any,
) -> Comparison:
    """Open and lock a folder and its state until `stack` is closed. Compare them with the posts of the service."""
    folder = stack.enter_context(closing(Folder(path)))
    try:
        folder.lock()
    except BlockingIOError:
        raise RemoteError(f"another push or pull of {path} is running") from None
    place = stack.enter_context(closing(Folder(state.absolute().parent))) if state else folder
    known = stack.enter_context(closing(SyncState(place, state.name if state else STATE, dry_run)))
    zone = zone_of(known)
    refuse_other_folders(path, known, remote.url, moves)
    posts = list_posts(remote, known, moves)
    options |= {"zone": zone, "with_git": not no_gitignore}
    return Comparison(WorkingFolder(folder, known, remote.url, remote.now, **options), remote, posts, str(zone))


def zone_of(state: SyncState) -> tzinfo:
    """Return the time zone for times without an offset: the recorded one or, if none is recorded, the configured one.

    Raises RemoteError if BLOGAPI_TIMEZONE is set to a time zone other than the recorded one.
    """
    zone = Config.from_environ(os.environ).timezone
    if not state.zone or state.zone == str(zone):
        return zone
    if os.environ.get("BLOGAPI_TIMEZONE"):
        way = f"set it back to {state.zone}, or delete {state.name} to compare all files with the posts"
        raise RemoteError(f"the folder was synced with BLOGAPI_TIMEZONE={state.zone}, but it is now {zone}: {way}")
    return Config.from_environ({"BLOGAPI_TIMEZONE": state.zone}).timezone


def print_results(starters: Iterable[Starter], comparison: Comparison, output: Output) -> Counter[str]:
    """Run a push, a pull or both. Print the results, the skipped files and the counts, and return the counts."""
    counts = Counter(created=0, updated=0, unchanged=0, conflict=0, failed=0)
    syncs, sources = [start(comparison) for start in starters], comparison.working.sources
    try:
        results = (with_progress(sync.results(), len(sync.queue)) for sync in syncs)
        for result in unique(chain(comparison.results, *results)):
            counts[result.outcome] += 1
            output.result(result)
            if result.outcome == "conflict" and output.diff:
                output.difference(result.name, differences(comparison, result.name))
        for line in (*refused_images(sources), *settings_of(sources), *left_out(sources, "Left out")):
            if not output.quiet:
                output.line(line, is_error=True)
    finally:
        output.summary(counts)
    return counts


def unique(results: Iterable[Result]) -> Iterator[Result]:
    """Yield only the first result for each file, because in `status`, push and pull report the same conflicts."""
    names = set()
    for result in results:
        if result.outcome == "renamed":
            yield result
        elif result.name not in names:
            names.add(result.name)
            yield result
