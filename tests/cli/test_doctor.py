"""`blogapi doctor`, and recreating a broken environment."""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import closing, nullcontext

import pytest

from tests.cases import cases
from tests.cli.conftest import run_command
from tests.databases import execute
from tests.service import BIN, CHECKOUT, free_port, without_rights


def checks(**environ):
    """The exit status of `blogapi doctor`, and what it says about each check."""
    status, lines, errors = run_command("doctor", **environ)
    assert errors == []
    return status, dict(line.split(": ", 1) for line in lines)


def test_a_running_service_passes_every_check_even_in_a_terminal_that_does_not_know_its_port(server):
    for environ in (server.environ, {"BLOGAPI_DATABASE": str(server.database)}):
        status, found = checks(**environ)
        assert (status, found["BLOGAPI_URL"]) == (0, f"ok, http://{server.host}:{server.port}"), environ
        assert [result[:4] for result in found.values()] == ["ok, "] * len(found)
        assert {"database", "clock", "BLOGAPI_URL", "proxies"} <= set(found)


def test_each_fault_has_a_line(path, run, folder):
    os.chmod(path, 0o644)
    run("import", folder(a="---\nstatus: published\n---\n# A"))
    execute(path, "UPDATE post SET published_at = replace(published_at, '20', '29')")
    status, found = checks(BLOGAPI_URL="http://blog.invalid:1")
    assert status == 1
    assert found["permissions"] == f"WRONG: other users can read the database: chmod 600 {path}"
    assert re.match("WRONG: it is 20.{18}, but a post is dated 29.{18}; correct the clock or", found["clock"])
    assert found["BLOGAPI_URL"].startswith("WRONG: http://blog.invalid:1/healthz: ")
    assert found["proxies"].startswith("WRONG: BLOGAPI_URL is http: ")
    assert checks(BLOGAPI_URL="https://blog.invalid:1")[1]["proxies"].startswith("WRONG: BLOGAPI_TRUSTED_PROXIES ")


def test_a_missing_database_and_a_missing_server_are_faults(tmp_path):
    port = free_port()
    status, found = checks(BLOGAPI_DATABASE=str(tmp_path / "none.db"), PORT=str(port))
    assert (status, found["database"][:27]) == (1, "WRONG: there is no database")
    assert list(found) == ["database", "Python", "BLOGAPI_URL", "proxies"]
    assert list(tmp_path.iterdir()) == []
    url = f"http://127.0.0.1:{port}/healthz"
    assert found["BLOGAPI_URL"] == f"WRONG: {url}: Connection refused; is the server running?"


def test_it_says_that_a_database_is_new_or_has_no_key(path, run, folder):
    run("keys", "create", "mine")
    assert checks()[1]["contents"] == f"ok, no posts yet: {path} is new"
    run("import", folder(a="A"))
    assert checks()[1]["contents"] == "ok, 1 post"
    run("import", folder(b="B"))
    assert checks()[1]["contents"] == "ok, 2 posts"
    execute(path, "DELETE FROM api_key")
    assert checks()[1]["contents"].startswith("WRONG: 2 posts, but no API key: ")


def test_damage_and_a_missing_index_are_found(path, run, folder):
    run("keys", "create", "mine")
    run("import", folder(a="A" * 500_000))
    execute(path, "DROP INDEX post_status")
    assert checks()[1]["database"].startswith("WRONG: index post_status is missing: ")
    with open(path, "r+b") as file:
        file.seek(-100 * 4096, os.SEEK_END)
        file.write(b"\xff" * 40 * 4096)
    status, found = checks()
    assert (status, found["database"].endswith("; restore a backup")) == (1, True), found["database"]
    assert "contents" not in found


@pytest.mark.slow
def test_each_file_that_cannot_be_used_is_named_with_the_command_that_helps(path, run):
    run("keys", "create", "mine")
    for name, mode, file in [("blog.db", 0, path), ("blog.db-wal", 0, f"{path}-wal"), ("folder", 0o500, path.parent)]:
        with open(file, "ab") if name != "folder" else nullcontext():
            before = os.stat(file).st_mode
        os.chmod(file, mode)
        command = without_rights(BIN / "blogapi", "doctor")
        lines = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout.splitlines()
        os.chmod(file, before)
        (fault,) = [line for line in lines if "WRONG" in line and not line.startswith("BLOGAPI_URL")]
        assert re.fullmatch(rf"access: WRONG: \w+ cannot read and write {file}; chmod u\+rwX {file}", fault), fault


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_that_belongs_to_root_in_another_users_folder_is_a_fault(path, run):
    run("keys", "create", "mine")
    os.chown(path.parent, 12345, -1)
    command = f"it belongs to root: chown 12345 {path}"
    assert checks()[1]["access"] == f"WRONG: 12345 cannot read and write {path}; {command}"
    os.chown(path, 12345, -1)
    assert checks()[1]["access"].startswith("ok, ")
    with open(f"{path}-wal", "w", encoding="utf-8"):
        os.chown(f"{path}-wal", 54321, -1)
    command = f"it belongs to 54321: chown 12345 {path}-wal"
    assert checks()[1]["access"] == f"WRONG: 12345 cannot read and write {path}-wal; {command}"


def test_a_folder_and_an_absent_server_are_faults_with_advice(tmp_path):
    fault = f"WRONG: cannot use the database {tmp_path}: Is a directory; set BLOGAPI_DATABASE to a file"
    assert checks(BLOGAPI_DATABASE=str(tmp_path))[1]["database"] == fault
    hosts = [("127.0.0.1", free_port()), ("localhost", free_port())]
    url = f"postgresql://me@{','.join(f'{host}:{port}' for host, port in hosts)}/blog"
    refused = "; ".join(f"{host} port {port}: Connection refused" for host, port in hosts)
    fault = f"WRONG: cannot use the database {url}: {refused}; is the server running there? "
    assert checks(BLOGAPI_DATABASE=url)[1]["database"] == f"{fault}See BLOGAPI_DATABASE"


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
def test_a_server_for_an_existing_database_creates_none(tmp_path, content):
    path = tmp_path / "blog.db"
    if content is not None:
        path.write_bytes(content)
    environ = os.environ | {"BLOGAPI_DATABASE": str(path), "PORT": str(free_port())}
    gunicorn = [BIN / "gunicorn", "--config", "python:blogapi.server.gunicorn_conf"]
    for command, more in [([BIN / "blogapi", "serve", "--existing"], {}), (gunicorn, {"BLOGAPI_CREATE": "false"})]:
        ended = subprocess.run(command, capture_output=True, text=True, env=environ | more, timeout=60)
        assert (ended.returncode, "run blogapi init" in ended.stderr) == (1, True), ended.stderr
        assert (path.read_bytes() if path.exists() else None) == content
    ended = subprocess.run([BIN / "blogapi", "init"], capture_output=True, text=True, env=environ, timeout=60)
    assert ended.stderr == f"created a new database {path}\n"


@cases(
    ("answered", "fault"),
    (b"SSH-2.0-OpenSSH_9\r\n", "the response is not HTTP; is the server running?"),
    (b"HTTP/1.0 404 No\r\n\r\n", "404 No; see the log of the server; if this is another program, set PORT or BLOG"),
    (b"HTTP/1.0 204 No Content\r\n\r\n", "the response is another program's"),
    (b"", "Remote end closed connection without response; is the server running?"),
)
def test_a_server_that_is_not_ours_is_a_fault(path, answered, fault):
    with closing(socket.create_server(("127.0.0.1", 0))) as server:

        def answer():
            with server.accept()[0] as client:
                client.recv(1000)
                client.sendall(answered)

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        status, found = checks(BLOGAPI_URL=url)
        thread.join()
    assert (status, found["BLOGAPI_URL"].startswith(f"WRONG: {url}/healthz: {fault}")) == (1, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "python", "expected"),
    [
        ("", sys.executable, "Nothing to be done for"),
        ("/somewhere/else", sys.executable, ".venv is created again: the checkout has moved."),
        ("", "/no/python3", ".venv is created again: its Python was removed or replaced."),
        ("", "/bin/false", ".venv is created again: its Python was removed or replaced."),
    ],
)
def test_a_broken_environment_is_recreated(tmp_path, path, python, expected):
    for name in ("Makefile", "setup.cfg", "pyproject.toml"):
        shutil.copy(CHECKOUT / name, tmp_path)
    shutil.copytree(CHECKOUT / "requirements", tmp_path / "requirements")
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    (tmp_path / ".venv/bin/python").chmod(0o755)
    (tmp_path / ".venv/installed").write_text(f"{path or tmp_path}\n")
    # As from a shell: a make that runs this test would pass on its flags, and make the inner make print the folder.
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")} | {"PYTHON": ""}
    make = ["make", "-n", "install"]
    steps = subprocess.run(make, cwd=tmp_path, env=env, capture_output=True, text=True).stdout
    assert expected in steps
    assert ("python3 -m venv --clear .venv\n" in steps) is steps.startswith(".venv is created again")
