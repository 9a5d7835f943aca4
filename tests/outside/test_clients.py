"""The description as other programs use it: a linter, and clients that run every operation."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.outside.tools import install, installing, require_node, run
from tests.service import BIN, CHECKOUT, Server, eventually

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("clients")]

CLIENTS = CHECKOUT / "tests/clients"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for the description and anything generated from it."""
    folder = tmp_path_factory.mktemp("clients")
    with (folder / "openapi.json").open("w") as file:
        subprocess.run([BIN / "blogapi", "openapi"], stdout=file, check=True)
    return folder


@pytest.fixture(scope="module")
def npm(folder):
    """Run a command from the packages in tests/clients, which are installed once; it must report no problem."""
    require_node()
    with installing(CLIENTS / "node_modules/.package-lock.json", CLIENTS / "package-lock.json") as needed:
        if needed:
            soon = ["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000"]
            install("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", *soon, cwd=CLIENTS)
    shutil.copytree(CLIENTS, folder, ignore=shutil.ignore_patterns("node_modules", "package*.json"), dirs_exist_ok=True)
    (folder / "node_modules").symlink_to(CLIENTS / "node_modules")
    quiet = {"NO_COLOR": "1", "REDOCLY_TELEMETRY": "off"}

    return lambda name, *arguments: run(CLIENTS / "node_modules/.bin" / name, *arguments, cwd=folder, **quiet)


def every_operation_is_done(service):
    """Return whether every operation has succeeded, according to the server's log."""
    described = service.request("GET", "/openapi.json")[2]["paths"]
    requests = [
        rf'"{method.upper()} {re.sub("{[^}]+}", "[^/?]+", path)}([?][^"]*)?" 2'
        for path, item in described.items()
        for method in item
    ]
    return lambda: all(re.search(request, service.log) for request in requests)


@pytest.mark.usefixtures("soak")
def test_redocly_finds_no_problem(npm):
    assert '"problems": []' in npm("redocly", "lint", "openapi.json", "--format", "json")


def test_its_patterns_are_valid_with_and_without_the_u_flag(folder):
    require_node()
    patterns = re.findall(r'"pattern": (".*?(?<!\\)")', (folder / "openapi.json").read_text())
    assert len(patterns) > 8
    tries = "".join(f"RegExp({pattern}); RegExp({pattern}, 'u');" for pattern in patterns)
    assert run("node", "--eval", tries, cwd=folder) == ""


@pytest.mark.usefixtures("soak")
def test_typescript_clients_run_every_operation(npm, folder, tmp_path):
    npm("openapi-typescript", "openapi.json", "--output", "types.ts")
    npm("openapi-ts")
    npm("orval", "--config", "orval.config.cjs")
    npm("tsc", "--outDir", "built")
    for client in ("hey", "fetch", "orval"):
        with Server(tmp_path / f"{client}.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
            base = f"http://127.0.0.1:{service.port}"
            assert run("node", f"built/{client}.js", cwd=folder, BASE=base, KEY=service.key) == ""
            if client != "orval":  # It only writes and changes a post.
                eventually(every_operation_is_done(service))


def test_a_python_client_runs_every_operation(service, folder):
    tool = [BIN / "openapi-python-client", "generate", "--path", "openapi.json", "--meta", "none"]
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"  # for ruff, which formats the client
    output = run(*tool, "--output-path", "blogclient", cwd=folder, PATH=path)
    assert output.count("WARNING") == output.count("Unsupported content type text/markdown") == 3
    base = f"http://127.0.0.1:{service.port}"
    environ = {"PYTHONPATH": str(folder), "BASE": base, "KEY": service.key}
    assert run(sys.executable, CLIENTS / "client.py", cwd=folder, **environ) == ""
    eventually(every_operation_is_done(service))
