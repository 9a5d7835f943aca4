"""The command line: init, serve and keys."""

import os
import re
import socket
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing

import pytest
from click.testing import CliRunner

from blogapi import cli
from blogapi.storage import keys
from blogapi.storage.database import Database
from blogapi.storage.sqlite import Sqlite
from tests.service import BIN, unmeasured

KEY = re.compile(r"blog_[A-Za-z0-9_-]{43}\n")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command line on a database of its own; return the exit status, standard output and the error."""
    monkeypatch.setenv("BLOGAPI_DATABASE", str(tmp_path / "blog.db"))

    def run(*arguments):
        result = CliRunner().invoke(cli.command_line, arguments)
        return result.exit_code, result.stdout, str(result.exception or "")

    return run


@pytest.fixture
def database(tmp_path):
    """A database without keys."""
    engine = Sqlite(tmp_path / "blog.db")
    engine.open()
    engine.close()


@pytest.fixture
def names(tmp_path):
    """The names of all keys."""

    def names():
        engine = Sqlite(tmp_path / "blog.db")
        engine.open(create=False)
        found = [key.name for key in keys.listing(Database(engine))]
        engine.close()
        return found

    return names


@pytest.fixture
def known(tmp_path):
    """Return whether a key is valid."""

    def known(key):
        engine = Sqlite(tmp_path / "blog.db")
        engine.open(create=False)
        found = keys.authenticate(Database(engine), keys.digest_of(key.strip()))
        engine.close()
        return found is not None

    return known


@pytest.mark.usefixtures("database")
def test_create_prints_the_key_alone(run, known):
    status, key, _ = run("keys", "create", "laptop")
    assert status == 0
    assert KEY.fullmatch(key)
    assert known(key)


@pytest.mark.usefixtures("database")
def test_regenerate_keeps_the_name_and_kills_the_old_key(run, names, known):
    _, old, _ = run("keys", "create", "laptop")
    status, new, _ = run("keys", "regenerate", "laptop")
    assert status == 0
    assert KEY.fullmatch(new)
    assert (known(old), known(new)) == (False, True)
    assert names() == ["laptop"]


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("options", "scope"),
    [
        ([], "full"),
        (["--read-only"], "read-only"),
        (["--published-only"], "published-only"),
        (["--published-only", "--read-only"], "published-only"),
    ],
)
def test_list_shows_the_scope_of_a_key_which_regenerate_keeps(run, options, scope):
    for arguments in (["create", "website", *options], ["regenerate", "website"]):
        key = run("keys", *arguments)[1].strip()
        line = run("keys", "list")[1].splitlines()[1]
        assert re.split("  +", line)[::2] == ["website", line.split()[2], scope]
        assert line.split()[1] == key[-4:]


@pytest.mark.usefixtures("database")
def test_revoke_kills_the_key_and_frees_the_name(run, known):
    _, key, _ = run("keys", "create", "laptop")
    assert run("keys", "revoke", "laptop") == (0, "", "")
    assert not known(key)
    assert run("keys", "create", "laptop")[0] == 0


@pytest.mark.usefixtures("database")
def test_list_has_a_line_for_each_key(run):
    _, b, _ = run("keys", "create", "b")
    _, a, _ = run("keys", "create", "a name")
    status, listing, _ = run("keys", "list")
    rows = [re.split(r"  +", line.strip()) for line in listing.splitlines()]
    assert status == 0
    assert rows[0] == ["NAME", "LAST FOUR", "CREATED", "LAST USED", "SCOPE"]
    assert [(name, four, used, scope) for name, four, _, used, scope in rows[1:]] == [
        ("a name", a.strip()[-4:], "never", "full"),
        ("b", b.strip()[-4:], "never", "full"),
    ]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[2]) for row in rows[1:])
    assert a.strip()[:-4] not in listing


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "taken"), "a key called 'taken' already exists"),
        (("create", ""), "the name of a key must have 1 to 100 characters in one line, one of them visible"),
        (("create", " "), "the name of a key must have 1 to 100 characters in one line, one of them visible"),
        (("create", "a\nb"), "the name of a key must have 1 to 100 characters in one line, one of them visible"),
        *[
            (("create", name), f"{name!r} is reserved for changes that no key made; choose another name")
            for name in ("settings", "import", "undo")
        ],
        (("regenerate", "unknown"), "there is no key called 'unknown'"),
        (("regenerate", ""), "there is no key called ''"),
        (("revoke", "unknown"), "there is no key called 'unknown'"),
        (("revoke", ""), "there is no key called ''"),
    ],
)
@pytest.mark.usefixtures("database")
def test_an_error_is_one_clear_line(run, arguments, message, names):
    run("keys", "create", "taken")
    status, output, error = run("keys", *arguments)
    assert (status, output, error) == (1, "", message)
    assert len(names()) == 1


@pytest.mark.parametrize("arguments", [("create", "new"), ("regenerate", "old")])
@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
@pytest.mark.usefixtures("database")
def test_a_key_that_cannot_be_shown_is_not_created(run, arguments, redirection, names, known):
    _, old, _ = run("keys", "create", "old")
    shell = f'exec "$0" keys {" ".join(arguments)} {redirection}'
    ended = subprocess.run(["sh", "-c", shell, BIN / "blogapi"], capture_output=True, text=True, timeout=20)
    assert ended.returncode == 1
    assert ended.stderr.startswith("blogapi: ")
    assert ended.stderr.endswith("nothing was changed\n")
    assert ended.stderr.count("\n") == 1
    assert known(old)
    assert len(names()) == 1


@pytest.mark.parametrize("redirection", [">/dev/full", ">&-"])
def test_a_link_that_cannot_be_shown_does_not_exist(run, tmp_path, redirection):
    run("init")
    shell = f'exec "$0" settings {redirection}'
    ended = subprocess.run(["sh", "-c", shell, BIN / "blogapi"], capture_output=True, text=True, timeout=20)
    assert (ended.returncode, ended.stderr.endswith("nothing was changed\n")) == (1, True)
    with closing(sqlite3.connect(tmp_path / "blog.db")) as connection:
        assert connection.execute("SELECT count(*) FROM owner_session").fetchone() == (0,)


def test_init_creates_a_first_key_only_with_the_database(run, tmp_path, names, known):
    status, output, _ = run("init")
    assert status == 0
    assert output.startswith(f"{tmp_path / 'blog.db'} is ready")
    assert known(KEY.search(output)[0])
    assert run("init") == (0, "", "")
    assert len(names()) == 1


def test_a_first_key_that_could_not_be_shown_is_created_by_the_next_init(run, tmp_path, known):
    ended = subprocess.run(["sh", "-c", 'exec "$0" init >/dev/full', BIN / "blogapi"], capture_output=True, timeout=20)
    assert ended.returncode == 1
    _, output, _ = run("init")
    assert known(KEY.search(output)[0])


def test_the_database_is_for_its_owner_only(run, tmp_path):
    run("init")
    assert stat.S_IMODE((tmp_path / "blog.db").stat().st_mode) == 0o600


@pytest.mark.parametrize("command", ["keys list", "keys create new", "keys revoke old", "import ."])
def test_commands_on_a_database_that_is_not_there_do_not_make_one(run, tmp_path, command):
    status, output, error = run(*command.split())
    hint = "run blogapi init, or set BLOGAPI_DATABASE to an existing one"
    assert (status, output, error) == (1, "", f"there is no database {tmp_path / 'blog.db'}: {hint}")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_is_set_up_only_by_init(run, tmp_path):
    path = tmp_path / "blog.db"
    path.touch()
    error = f"cannot use the database {path}: it is empty; run blogapi init to set it up"
    assert run("keys", "list") == (1, "", error)
    assert path.stat().st_size == 0


def test_a_missing_database_is_named_with_its_folder(run, tmp_path, monkeypatch):
    monkeypatch.delenv("BLOGAPI_DATABASE")
    monkeypatch.chdir(tmp_path)
    assert run("keys", "list")[2].startswith(f"there is no database {tmp_path / 'blog.db'}: ")


def test_a_typo_in_a_setting_ends_the_command_line_too(run, monkeypatch):
    monkeypatch.setenv("BLOGAPI_DATABSE", "other.db")
    assert run("keys", "list") == (
        1,
        "",
        "BLOGAPI_DATABSE: unknown setting; did you mean BLOGAPI_DATABASE?",
    )


def test_a_first_key_is_not_created_if_the_port_is_taken(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        environ = os.environ | {"PORT": str(port)}
        ended = subprocess.run(
            [BIN / "blogapi", "serve"], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=20
        )
    reason = f"cannot listen on 127.0.0.1 port {port}: Address already in use; set HOST or PORT"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"blogapi: {reason}\n")
    assert list(tmp_path.iterdir()) == []


def test_the_program_ends_with_one_line_and_a_status(monkeypatch, tmp_path):
    monkeypatch.setenv("BLOGAPI_DATABASE", str(tmp_path / "nowhere" / "blog.db"))
    monkeypatch.setattr("sys.argv", ["blogapi", "init"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    path = tmp_path / "nowhere" / "blog.db"
    assert exit_.value.code == f"blogapi: cannot set up the database {path}: its folder is missing"


def test_commands_for_keys_import_neither_flask_nor_parsers():
    code = "import sys, blogapi.cli.commands; print(*{'flask', 'bs4', 'yaml', 'gevent', 'urllib3'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], env=unmeasured(), capture_output=True, text=True).stdout == "\n"


def test_commands_for_files_import_neither_flask_nor_gevent():
    code = "import sys, blogapi.cli.transfer; print(*{'flask', 'werkzeug', 'gevent'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], env=unmeasured(), capture_output=True, text=True).stdout == "\n"
