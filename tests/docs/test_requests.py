"""The running service as its description says, for thousands of requests."""

import subprocess

import pytest

from tests.service import BIN, CHECKOUT, Server, unmeasured


@pytest.mark.slow
def test_it_matches_the_running_service(tmp_path, scale):
    """Schemathesis with all its checks: positive and negative data, and sequences of operations.

    Operations by slug take and answer the same as those by id, which test_openapi.py shows.
    """
    with Server(tmp_path / "blog.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
        command = [BIN / "schemathesis", "--config-file", CHECKOUT / "tests/schemathesis.toml", "run"]
        command += [f"http://127.0.0.1:{service.port}/openapi.json"]
        command += ["--checks", "all", "--max-examples", str(2 * scale), "--seed", "7"]
        command += ["--exclude-operation-id-regex", "_by_slug$"] if scale == 1 else []
        hooks = {"SCHEMATHESIS_HOOKS": "tests.schemathesis_hooks", "PYTHONPATH": str(CHECKOUT)}
        environ = unmeasured() | hooks | {"KEY": service.key}
        ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
