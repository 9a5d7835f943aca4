"""An import into a database of its own."""

import pytest
from click.testing import CliRunner

from blogapi import cli
from blogapi.posts import lists
from blogapi.storage.database import Database
from blogapi.storage.sqlite import Sqlite


@pytest.fixture
def path(tmp_path, monkeypatch):
    """The file of a database that is set up."""
    path = tmp_path / "blog.db"
    monkeypatch.setenv("BLOGAPI_DATABASE", str(path))
    engine = Sqlite(path)
    engine.open()
    engine.close()
    return path


@pytest.fixture
def storage(path):
    engine = Sqlite(path)
    engine.open()
    yield Database(engine)
    engine.close()


@pytest.fixture
def run(path):
    """Run the command line; return the exit status, and the lines of standard output and error."""

    def run(*arguments):
        result = CliRunner().invoke(cli.command_line, [str(argument) for argument in arguments])
        assert isinstance(result.exception, SystemExit | None), result.exception
        return result.exit_code, result.stdout.splitlines(), result.stderr.splitlines()

    return run


@pytest.fixture
def folder(tmp_path):
    """A folder, and a function that writes files into it."""
    folder = tmp_path / "posts"
    folder.mkdir()

    def write(**texts):
        for name, text in texts.items():
            path = folder / f"{name}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return folder

    return write


def stored(database):
    """All posts by their slugs, newest first."""
    return {post["slug"]: post for post in lists.every(database)}


def many(folder, count):
    return folder(**{f"post-{number:05}": f"---\ntags: [a, b]\n---\n\nWords {number}.\n" for number in range(count)})
