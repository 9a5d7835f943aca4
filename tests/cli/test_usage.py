"""Options and arguments that the commands refuse."""

import json
import os
import subprocess
import sys
from datetime import date, timedelta
from importlib.metadata import version

import click
import pytest
from click.shell_completion import ShellComplete

from blogapi.cli import command_line
from tests.cases import cases
from tests.cli.conftest import stored

NO_URLS = ["", "blog.example.org", "ftp://a.example", f"https://a.example/{'x' * 3000}"]
NO_TIME = "Invalid value for '--since': must be a date such as 2026-11-20, or a time such as 2026-11-20T10:10:00Z"


# Each command, with arguments that make it succeed. Others need more: `serve` (in test_cli.py), `doctor` (in
# test_doctor.py), and `push`, `pull` and `status` (in tests/sync).
COMMANDS = {
    **dict.fromkeys(("init", "login", "config", "openapi", "images"), ""),
    **{"keys": "list", "import": "posts", "undo": "--since 2026-11-20", "export": "exported"},
    **{"backup": "backup.db", "copy": "copy.db"},
}


def test_each_command_succeeds_and_openapi_prints_the_description(run, storage, write, tmp_path, monkeypatch, stranger):
    write({"posts/a.md": "# A"})
    monkeypatch.chdir(tmp_path / "blog")
    assert {*COMMANDS, "serve", "doctor", "push", "pull", "status"} == {*command_line.list_commands(None)}
    for command, arguments in COMMANDS.items():
        status, output, error = run(command, *arguments.split())
        assert (status, error) == (0, []), (command, output, error)
    assert json.loads("".join(run("openapi")[1])) == stranger.get("/openapi.json").json
    assert run("--version")[1] == [f"blogapi {version('blogapi')}"]


IN_TURN = """import sys
from blogapi.cli import main
for command in sys.argv[1:]:
    sys.argv[1:] = command.split()
    try:
        main()
    except SystemExit as ended:
        assert not ended.code
    print(end="\\0", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["latin-1", "ascii"])
def test_a_locale_that_lacks_characters_changes_no_exit_status(storage, write, tmp_path, locale):
    folder = write({"Grüße 日本.md": "---\ntitle: Grüße 日本\ndate: 2020-01-01\npermalink: /alt/ä/\n---\nText"})
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environ = os.environ | ({"PYTHONIOENCODING": "latin-1"} if locale == "latin-1" else ascii_only)
    imported = f"import {folder} --redirects {tmp_path / 'old'}"
    undone = f"undo --since {date.today() - timedelta(days=1)}"
    commands = "--version", imported, imported, undone, "openapi", "keys list"
    ended = subprocess.run([sys.executable, "-c", IN_TURN, *commands], env=environ, capture_output=True, timeout=60)
    outputs = ended.stdout.split(b"\0")
    assert (ended.returncode, len(outputs), outputs[3][:2]) == (0, 7, b"1 "), ended


@cases(
    ("arguments", "message"),
    (["import", "--permalink", "/:name/", "."], "Invalid value for '--permalink': must be one of date, pretty,"),
    (["import", "--base-url", "a", "."], "Invalid value for '--base-url': must be an absolute http or https URL"),
    (["import", "--static", "typo", "."], "Invalid value for '--static': Directory 'typo' does not exist."),
    *((arguments, "': must not be empty") for arguments in (["import", ""], ["import", ".", ""], ["export", ""])),
    (["images", "--delete"], "--delete needs --unused"),
    *((["images", "--rebase", url], "must be an absolute http or https URL") for url in NO_URLS),
    *((["undo", "--since", time], NO_TIME) for time in ("yesterday", "", "2026-13-01")),
)
def test_an_invalid_argument_is_refused(run, storage, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("A")
    status, output, error = run(*arguments)
    assert (status, output, message in error[-1]) == (2, [], True), error
    assert stored(storage) == {}


def test_the_help_of_every_command_names_the_exit_statuses(run):
    def check(group, *path):
        for name in group.list_commands(None):
            command = group.get_command(None, name)
            _, output, _ = run(*path, name, "--help")
            assert "Exit status: 0 for success" in " ".join(output), (*path, name)
            if isinstance(command, click.Group):
                check(command, *path, name)

    check(command_line)
    assert "Exit status: 0 for success" in " ".join(run("--help")[1])


def test_a_shell_completes_commands_and_options():
    for words, expected in (("blogapi ba", {"backup"}), ("blogapi backup --k", {"--keep"})):
        *before, last = words.split()
        completion = ShellComplete(command_line, {}, "blogapi", "_BLOGAPI_COMPLETE").get_completions(before[1:], last)
        assert {each.value for each in completion} == expected
