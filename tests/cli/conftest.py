"""Fixtures that run commands on a separate database, and import posts and images into it."""

from functools import partial
from io import BytesIO

import pytest
from click.testing import CliRunner

from blogapi import cli
from blogapi.posts import lists
from blogapi.storage.errors import Unavailable
from blogapi.wings.images import storage as images
from tests.blogs import write_files
from tests.databases import opened
from tests.images.pictures import gif, jpeg, png, webp

URL = "http://127.0.0.1:8000"
LOAF, RYE, OVEN, COVER = jpeg(), png(), webp(), gif()


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The file of a database that has been set up."""
    path = tmp_path / "blog.db"
    monkeypatch.setenv("BLOGAPI_DATABASE", str(path))
    with opened(path):
        return path


@pytest.fixture
def storage(path):
    with opened(path) as database:
        yield database


def run_command(*arguments, **environ):
    """Run the command line; return the exit status, and the lines of standard output and error."""
    result = CliRunner().invoke(cli.command_line, [str(argument) for argument in arguments], env=environ)
    errors = result.stderr.splitlines()
    if isinstance(result.exception, OSError | Unavailable | ValueError):  # `main` prints these.
        return 1, result.stdout.splitlines(), [*errors, str(result.exception)]
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result.exit_code, result.stdout.splitlines(), errors


@pytest.fixture
def run(path):
    """Run the command line on the database."""
    return run_command


@pytest.fixture
def write(tmp_path):
    """Write files below a folder; return it."""
    return partial(write_files, tmp_path / "blog")


@pytest.fixture
def folder(write):
    """Write Markdown files into a folder; return it."""
    return lambda **texts: write({f"{name}.md": text for name, text in texts.items()})


def stored(database):
    """All posts by their slugs, newest first."""
    return {post["slug"]: post for post in lists.every(database)}


def many(folder, count):
    head = "---\ntitle: Post\ntags: [a, b]\n---\n\n"
    return folder(**{f"post-{number:05}": f"{head}Words {number}.\n" for number in range(count)})


def image_of(content):
    return images.identify(BytesIO(content), "a")[0]


def address(content):
    """The URL that an image has once it is stored."""
    return URL + image_of(content).path


def kept(content):
    """The stored bytes of an image."""
    return b"".join(images.identify(BytesIO(content), "a")[1].parts(images.PART_BYTES))
