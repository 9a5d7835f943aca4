"""The settings file."""

import os
import re
import subprocess
import time
from contextlib import suppress

import pytest

from blogapi import env_file
from blogapi.storage import keys
from tests.cli.conftest import run_command as run
from tests.databases import opened
from tests.pages import Page
from tests.service import BIN, add_key, slowness

(EXAMPLE,) = Page("docs/settings.md").take("A settings file", "")


@pytest.fixture(autouse=True)
def environ(monkeypatch, tmp_path):
    """The environment, without settings. The test runs in a separate folder, where blogapi looks for the files."""
    environ = {name: value for name, value in os.environ.items() if not env_file.OURS.fullmatch(name)}
    monkeypatch.setattr("os.environ", environ)
    monkeypatch.setattr(env_file, "FILES", ("etc.env", ".env"))
    monkeypatch.chdir(tmp_path)
    return environ


# What systemd 252 reads; each name is HOST
VALUES = {
    "HOST=a": "a",
    "HOST=": "",
    "  HOST \t=  a b  \n": "a b",
    "HOST=a&b;c|d#e $f `g` *": "a&b;c|d#e $f `g` *",
    "HOST=a # no comment": "a # no comment",
    "#HOST=a\n;HOST=b\nHOST=c": "c",
    "# goes on \\\nHOST=a": "a",
    "HOST=a\r\nPORT=1\r\n": "a",
    "HOST=a\nHOST=b": "b",
    "HOST='a  b' ": "a  b",
    "HOST='a\nb'": "a\nb",
    "HOST='a'\"b\"c": "abc",
    "HOST='a' 'b' c": "abc",
    """HOST=it's "a\"""": """it's "a\"""",
    r"HOST='\a\'": r"\a\ "[:-1],
    r"HOST=\'a\ \b": "'a b",
    r"HOST=a\ ": "a ",
    "HOST=a \\\n b \\": "a  b ",
    'HOST="a \\\nb"': "a b",
    r'HOST="\"\\\$\`\n\a"': r'"\$`\n\a',
    "HOST=\u00a0ä\u00a0": "\u00a0ä\u00a0",
    "junk\n=\n1=2\nHOST=a\nFOO BAR=1": "a",
}


def test_values_are_read_by_the_rules_of_systemd_if_they_are_ours_or_libpqs():
    for text, value in VALUES.items():
        assert env_file.parse(text.encode())["HOST"] == value, text
    text = "PATH=/evil\nLD_PRELOAD=x\nport=1\nexport HOST=a\nWEB_CONCURRENCY=2\nPGPASSWORD=p\nBLOGAPI_X=1\nMYBLOG=1"
    assert env_file.parse(text.encode()) == {"WEB_CONCURRENCY": "2", "PGPASSWORD": "p", "BLOGAPI_X": "1"}


def test_a_file_that_makes_no_sense_is_refused_and_named(tmp_path):
    refused = {
        b"\nBLOGAPI_DATABASE": "a setting must be NAME=value, not 'BLOGAPI_DATABASE'",
        b"export BLOGAPI_DATABASE=a": "a setting must be NAME=value, not 'export BLOGAPI_DATABASE'",
        b"BLOGAPI_DATABASE: a": "a setting must be NAME=value, not 'BLOGAPI_DATABASE: a'",
        b"HOST=a\nPORT='1\nX=2": "the value of 'PORT' lacks a closing quotation mark",
        b'HOST="' + b"\\" * 60_000: "the value of 'HOST' lacks a closing quotation mark",
        b"HOST=\xff": "'utf-8' codec can't decode byte 0xff in position 5: invalid start byte",
        b"HOST=a\0b": "must be text of at most 65536 bytes",
        b"#" * 65_537: "must be text of at most 65536 bytes",
    }
    for data, message in refused.items():
        (tmp_path / ".env").write_bytes(data)
        for command in ("config", "serve", "push"):
            assert run(command) == (1, [], [f".env: {message}"]), data


def test_a_hostile_file_takes_linear_time():
    begun = time.process_time()
    for part in (" ", "''", '""', "' \"", "\\ ", "\\\n", "a\n", "=", "HOST=\n", "HOST='", "a ", "# "):
        for text in (part * 20_000, f"HOST={part * 20_000}x", f"HOST={part * 20_000}'"):
            with suppress(ValueError):
                env_file.parse(text.encode()[: env_file.MAX_BYTES])
    assert time.process_time() - begun < 10 * slowness()


def test_one_file_is_read_and_the_environment_takes_precedence(environ, tmp_path):
    for name, port in (("given.env", 1), ("named.env", 2), ("etc.env", 3), (".env", 4)):
        (tmp_path / name).write_text(f"PORT={port}\n")
    for options, name, port in ((["--config", "given.env"], "given.env", 1), ([], "named.env", 2)):
        environ["BLOGAPI_CONFIG"] = "named.env"
        environ.pop("PORT", None)
        assert f"PORT {name} {port}" in squeezed(run(*options, "config"))
    for name, port in (("etc.env", 3), (".env", 4)):
        del environ["BLOGAPI_CONFIG"], environ["PORT"]
        assert f"PORT {name} {port}" in squeezed(run("config"))
        (tmp_path / name).unlink()
    environ["PORT"] = "5"
    assert "PORT environment 5" in squeezed(run("--config", "given.env", "config"))


def squeezed(result):
    """The lines of a command that succeeded, with single spaces."""
    assert result[0] == 0, result
    return [re.sub(" +", " ", line) for line in result[1]]


def test_a_file_that_cannot_be_read_is_an_error_unless_the_environment_names_the_database(environ, tmp_path):
    for name in ("none.env", "."):
        assert run("--config", name, "config")[2][0].startswith(f"cannot read {name}: ")
    (tmp_path / "etc.env").mkdir()
    assert run("keys", "list")[2] == ["cannot read etc.env: Is a directory; --config names another file"]
    environ["BLOGAPI_DATABASE"] = "blog.db"
    assert f"BLOGAPI_DATABASE environment {tmp_path}/blog.db" in squeezed(run("config"))


def test_config_prints_all_settings_and_masks_secrets(environ, tmp_path):
    (tmp_path / ".env").write_text(
        "BLOGAPI_DATABASE=postgresql://me:se@cret@db:5/blog?sslmode=require&password=secret&connect_timeout=9\n"
        "BLOGAPI_REMOTE=https://me:secret@blog.example.org\nBLOGAPI_KEY=blog_secret\nPGPASSWORD=secret\nHOST='a\x1b'\n"
    )
    environ["BLOGAPI_RATE_LIMIT"] = "7"
    output = squeezed(run("config"))
    assert "cret" not in "".join(output)
    assert set(output) >= {
        "BLOGAPI_DATABASE .env postgresql://me:…@db:5/blog?sslmode=require&password=…&connect_timeout=9",
        "BLOGAPI_REMOTE .env https://me:…@blog.example.org",
        "BLOGAPI_KEY .env …",
        "PGPASSWORD .env …",
        r"HOST .env 'a\x1b'",
        "PORT default 8000",
        "BLOGAPI_RATE_LIMIT environment 7",
        "BLOGAPI_CREATE default true",
        "BLOGAPI_DRAIN_SECONDS default 0",
        "BLOGAPI_WEBHOOK_PRIVATE default false",
        "BLOGAPI_CORS_ORIGINS default none",
    }


@pytest.mark.parametrize(
    "form", ["host=h password=secret dbname=b", "postgresql:/me:secret@h/b", "mysql://me:secret@h"]
)
def test_config_hides_a_database_address_in_another_form(environ, form):
    environ["BLOGAPI_DATABASE"] = form
    status, output, errors = run("config")
    assert (status, "BLOGAPI_DATABASE environment …" in squeezed((0, output))) == (1, True)
    assert "secret" not in "".join(output + errors)


def test_config_reports_an_invalid_setting(tmp_path):
    (tmp_path / ".env").write_text("PORT=http\n")
    status, output, errors = run("config")
    assert (status, "BLOGAPI_URL" in "".join(output)) == (1, True)
    assert errors == ["PORT: must be a whole number from 1 to 65535, not 'http'"]


def test_a_key_is_revoked_in_the_database_that_the_file_names_and_never_in_another(environ, tmp_path):
    url = "postgresql://blogapi@127.0.0.1:1/blog?sslmode=disable&connect_timeout=1"
    with opened(tmp_path / "blog.db") as database:  # the default, in the current folder
        add_key(database, "phone")
        (tmp_path / ".env").write_text(f"BLOGAPI_DATABASE={url}\n")
        status, output, (error,) = run("keys", "revoke", "phone")
        assert (status, output) == (1, [])
        assert "the database postgresql://blogapi@127.0.0.1:1/blog" in error
        assert [key.name for key in keys.listing(database)] == ["phone"]
        del environ["BLOGAPI_DATABASE"]
        (tmp_path / ".env").write_text(f"BLOGAPI_DATABASE={tmp_path}/blog.db\n")
        assert run("keys", "revoke", "phone")[:2] == (0, [f"revoked phone in {tmp_path}/blog.db"])


def test_push_takes_its_address_from_the_file(tmp_path):
    (tmp_path / "posts").mkdir()
    (tmp_path / ".env").write_text("BLOGAPI_REMOTE=http://127.0.0.1:1\nBLOGAPI_KEY=blog_secret\n")
    assert run("push", "posts")[2][0].startswith("http://127.0.0.1:1 is not responding: ")


def test_the_example_is_valid(tmp_path):
    (tmp_path / ".env").write_text(EXAMPLE)
    assert "BLOGAPI_CORS_ORIGINS .env https://blog.example.org, https://www.example.org" in squeezed(run("config"))


@pytest.mark.slow
def test_the_server_reads_the_file_however_it_is_started(environ, tmp_path):
    (tmp_path / "blogapi.env").write_text("PORT=nowhere\n")
    for command in (["gunicorn", "--config", "python:blogapi.server.gunicorn_conf"], ["blogapi", "serve"]):
        command[0] = BIN / command[0]
        options = {"env": environ | {"BLOGAPI_CONFIG": "blogapi.env"}, "cwd": tmp_path, "timeout": 60}
        ended = subprocess.run(command, capture_output=True, text=True, **options)
        assert (ended.returncode, "blogapi: PORT: must be a whole number" in ended.stderr) == (1, True)


def test_help_is_shown_even_if_the_file_is_invalid(tmp_path):
    (tmp_path / ".env").write_text("PORT")
    assert run("keys", "list")[0] == 1
    for arguments in (("--help",), ("keys", "--help"), ("keys", "list", "--help")):
        status, output, _ = run(*arguments)
        assert (status, output[0][:6]) == (0, "Usage:"), arguments
