"""The project as others install it: a wheel, in a virtual environment without the checkout."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import blogapi
from tests.service import CHECKOUT, free_port

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("installed")]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The commands of a virtual environment with the wheel.

    Dependencies come from the environment of the tests, so this works without a network.
    """
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    others = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "*.db*", "bench", "build", "tests")
    shutil.copytree(CHECKOUT, source, symlinks=True, ignore=others)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source]
    subprocess.run(build, check=True, timeout=180)
    shutil.rmtree(source)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv/bin/python"
    subprocess.run([*pip, f"--python={python}", "install", "--no-deps", "--no-index", wheel], check=True, timeout=180)
    (packages,) = (folder / "venv/lib").glob("python*/site-packages")
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib"))
    return python.parent


def test_when_installed_it_sets_itself_up_in_the_current_folder_and_serves(installed, tmp_path):
    port = free_port()
    environ = {"PATH": os.environ["PATH"], "PORT": str(port)}
    log = tmp_path / "log"
    command = [installed / "blogapi", "serve"]
    with log.open("w") as file:
        server = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=file, stderr=subprocess.STDOUT)

    def get(path, *options):
        curl = ["curl", "--silent", "--fail", "--retry", "20", "--retry-connrefused", "--retry-delay", "1", *options]
        ended = subprocess.run([*curl, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, timeout=60)
        return ended.stdout

    try:
        assert get("/healthz") == '{"status":"ok"}\n', log.read_text()
        key = re.search(r"blog_[A-Za-z0-9_-]{43}", log.read_text())[0]
        assert get("/v1/posts", "--header", f"Authorization: Bearer {key}") == "[]\n"
        assert "swagger" in get("/docs")
    finally:
        server.terminate()
        assert server.wait(60) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blog.db", "log"]


def test_when_installed_it_includes_its_own_files(installed, tmp_path):
    command = [installed / "python", "-c", "import blogapi; print(blogapi.__file__)"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    package, source = Path(ended.stdout.strip()).parent, Path(blogapi.__file__).parent
    assert package.is_relative_to(installed.parent)
    names = [str(path.relative_to(source)) for path in source.rglob("*.sql")]
    assert {"schema.sql", "postgresql/schema.sql", "storage/upgrades/7.sql"} <= set(names)
    for name in names:
        assert (package / name).read_text() == (source / name).read_text()
