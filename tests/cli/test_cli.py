"""The command line: init, serve and keys."""

import os
import re
import socket
import stat
import subprocess
import sys

import pytest

from blogapi import cli
from blogapi.storage import keys
from blogapi.storage.models import SCOPES
from tests.cases import cases
from tests.cli.conftest import run_command as run
from tests.databases import execute, opened
from tests.service import BIN, CHECKOUT, Server, unmeasured

KEY = re.compile("blog_[A-Za-z0-9_-]{43}")


@pytest.fixture
def missing(tmp_path, monkeypatch):
    """The path of a database that does not exist."""
    monkeypatch.setenv("BLOGAPI_DATABASE", str(tmp_path / "blog.db"))
    return tmp_path / "blog.db"


def names(path):
    """The names of all keys."""
    with opened(path, create=False) as database:
        return [key.name for key in keys.listing(database)]


def is_valid(path, key):
    with opened(path, create=False) as database:
        return keys.authenticate(database, keys.digest_of(key)) is not None


@pytest.mark.parametrize("scope", SCOPES)
def test_regenerating_a_key_keeps_its_name_and_scope_and_revokes_the_old_one(path, scope):
    (old,) = run("keys", "create", "website", *([] if scope == "full" else [f"--{scope}"]))[1]
    status, (new,), _ = run("keys", "regenerate", "website")
    assert (status, bool(KEY.fullmatch(new))) == (0, True)
    assert (is_valid(path, old), is_valid(path, new)) == (False, True)
    _, line = run("keys", "list")[1]
    assert re.split("  +", line)[::2] == ["website", line.split()[2], scope]
    assert line.split()[1] == new[-4:]


def test_list_has_a_line_for_each_key(path):
    (b,), (a,) = (run("keys", "create", name)[1] for name in ("b", "a name"))
    status, lines, _ = run("keys", "list")
    rows = [re.split(r"  +", line.strip()) for line in lines]
    assert (status, rows[0]) == (0, ["NAME", "LAST FOUR", "CREATED", "LAST USED", "SCOPE"])
    expected = [("a name", a[-4:], "never", "full"), ("b", b[-4:], "never", "full")]
    assert [(name, four, used, scope) for name, four, _, used, scope in rows[1:]] == expected
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[2]) for row in rows[1:])
    assert a[:-4] not in "".join(lines)


NO_NAME = "the name of a key must have 1 to 100 characters in one line, one of them visible"
RESERVED = "is reserved for changes that no key made; choose another name"


@cases(
    ("command", "name", "message"),
    ("create", "taken", "a key called 'taken' already exists"),
    *(("create", name, NO_NAME) for name in ("", " ", "a\nb")),
    *(("create", name, f"'{name}' {RESERVED}") for name in ("settings", "import", "undo")),
    *(("regenerate", name, f"there is no key called '{name}'") for name in ("unknown", "")),
    *(("revoke", name, f"there is no key called '{name}'") for name in ("unknown", "")),
)
def test_an_impossible_name_is_refused(path, command, name, message):
    run("keys", "create", "taken")
    assert (run("keys", command, name), names(path)) == ((1, [], [message]), ["taken"])


@cases("flags", [["--published-only", "--read-only"], ["--drafts-only", "--read-only", "--published-only"]])
def test_a_key_has_one_scope(path, flags):
    run("keys", "create", "taken")
    status, output, errors = run("keys", "create", "both", *flags)
    assert (status, output, names(path)) == (2, [], ["taken"])
    assert "a key has one scope: choose one of --published-only, --read-only" in errors[-1]


@cases("command", ["create", "regenerate", "revoke"])
def test_a_key_in_place_of_a_name_is_refused_and_not_repeated(path, command):
    run("keys", "create", "taken")
    refusal = "this is an API key, not the name of one; `blogapi keys list` shows the names"
    assert run("keys", command, f"{keys.new_key()}\r") == (1, [], [refusal])
    assert names(path) == ["taken"]


def run_in_shell(command):
    ended = subprocess.run(["sh", "-c", f'exec "$0" {command}', BIN / "blogapi"], capture_output=True, timeout=60)
    return ended.returncode, ended.stderr.decode()


def prints_or_changes_nothing(path, *commands):
    """Run commands that cannot print; they must fail and change nothing."""
    (old,) = run("keys", "create", "old")[1]
    for command in commands:
        status, error = run_in_shell(command)
        assert status == 1
        assert re.fullmatch("blogapi: .*nothing was changed\n", error)
        assert (is_valid(path, old), names(path)) == (True, ["old"])
        assert execute(path, "SELECT count(*) FROM owner_session") == [(0,)]


@pytest.mark.smoke
def test_a_key_that_cannot_be_printed_is_not_created(path):
    prints_or_changes_nothing(path, "keys create new >/dev/full")


@pytest.mark.slow
def test_a_regenerated_key_or_a_link_that_cannot_be_printed_is_not_created(path):
    commands = ("keys create new >&-", "keys regenerate old >/dev/full", "login >/dev/full", "login >&-")
    prints_or_changes_nothing(path, *commands, "settings >/dev/full")


def test_init_creates_a_first_key_only_with_the_database_which_is_for_its_owner_only(missing):
    status, output, _ = run("init")
    assert status == 0
    assert output[0].startswith(f"{missing} is ready")
    assert any(line.startswith("    curl http://127.0.0.1:8000/v1/posts -H") for line in output)
    assert is_valid(missing, KEY.search("\n".join(output))[0])
    assert stat.S_IMODE(missing.stat().st_mode) == 0o600
    assert run("init") == (0, [], [])
    assert len(names(missing)) == 1


@pytest.mark.slow
def test_a_first_key_that_could_not_be_printed_is_created_by_the_next_init(missing):
    assert run_in_shell("init >/dev/full")[0] == 1
    assert is_valid(missing, KEY.search("\n".join(run("init")[1]))[0])


@cases("command", ["keys list", "keys create new", "keys revoke old", "import .", "export posts", "backup copy.db"])
def test_commands_do_not_create_a_missing_database(missing, command, monkeypatch):
    error = f"there is no database {missing}: run blogapi init, or set BLOGAPI_DATABASE to an existing one"
    assert run(*command.split()) == (1, [], [error])
    monkeypatch.chdir(missing.parent)
    monkeypatch.delenv("BLOGAPI_DATABASE")  # The default is in the current folder.
    assert run(*command.split()) == (1, [], [error])
    monkeypatch.setenv("BLOGAPI_DATABASE", str(missing))
    assert list(missing.parent.iterdir()) == []


def test_an_empty_database_is_set_up_only_by_init(missing):
    missing.touch()
    error = f"cannot use the database {missing}: it is empty; run blogapi init to set it up"
    assert run("keys", "list") == (1, [], [error])
    assert missing.stat().st_size == 0


@pytest.mark.smoke
def test_serve_on_an_address_that_is_taken_creates_nothing(tmp_path):
    with socket.create_server(("127.0.0.2", 0)) as taken:
        port = taken.getsockname()[1]
        environ = os.environ | {"HOST": "127.0.0.3", "PORT": str(port)}
        command = [BIN / "blogapi", "serve", "--host", "127.0.0.2"]
        ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60)
    reason = f"cannot listen on 127.0.0.2 port {port}: Address already in use; set HOST or PORT"
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"blogapi: {reason}\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_serve_above_a_checkout_called_blogapi_serves(tmp_path):
    (tmp_path / "blogapi").symlink_to(CHECKOUT)
    command = ("sh", "-c", f'cd "{tmp_path}" && exec "{BIN / "blogapi"}" serve')
    with Server(tmp_path / "blog.db", command=command) as service:
        assert service.stop() == 0


def test_the_program_ends_with_one_line_and_a_status(monkeypatch, tmp_path):
    path = tmp_path / "nowhere" / "blog.db"
    monkeypatch.setenv("BLOGAPI_DATABASE", str(path))
    monkeypatch.setattr("sys.argv", ["blogapi", "init"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == f"blogapi: cannot set up the database {path}: the folder {path.parent} is missing"


@cases(
    "line",
    [
        "keys list {}",
        "undo --since 2026-01-01 {}",
        "login --days={}",
        "--{}",
        "{}",
        "push {}/nowhere",
        "keys revoke {}",
        "--config {} keys list",
    ],
)
def test_no_message_repeats_a_secret(line, missing, monkeypatch, capsys):
    for secret in (f"blog_{'a-_Z' * 10}b2c", f"whsec_{'a+/Z' * 10}b2c="):
        monkeypatch.setattr("sys.argv", ["blogapi", *line.format(secret).split()])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        output = f"{ended.value.code} {capsys.readouterr().err}"
        assert "a-_Z" not in output
        assert "a+/Z" not in output
        assert ended.value.code not in (0, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "unwanted"),
    [("commands", ["flask", "turbohtml", "yaml", "gevent", "urllib3"]), ("transfer", ["flask", "werkzeug", "gevent"])],
)
def test_commands_import_only_what_they_need(module, unwanted):
    code = f"import sys, blogapi.cli.{module}; print(*set({unwanted}) & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", code], env=unmeasured(), capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("\n", "")
