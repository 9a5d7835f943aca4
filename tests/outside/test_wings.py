"""A wing can be removed: its folder, its commands, and the lines about it in three lists."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
LISTS = "blogapi/factory.py", "blogapi/cli/commands.py", "blogapi/server/background.py"  # lines about wings


@pytest.fixture
def checkout(tmp_path):
    """A copy of the checkout, without files that git ignores."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TOP / name, tmp_path / name, follow_symlinks=False)
    (tmp_path / "sitecustomize.py").write_text(NOT_INSTALLED)
    return tmp_path


# The installed project is this checkout, so its wings would be found instead of those removed.
NOT_INSTALLED = "import sys; sys.meta_path[:] = [each for each in sys.meta_path if 'Editable' not in repr(each)]"


def without(checkout, *wings):
    """Remove wings as described in CONTRIBUTING."""
    for wing in wings:
        for folder in ("blogapi/wings", "tests"):
            shutil.rmtree(checkout / folder / wing)
        for module in (checkout / "blogapi/cli").glob(f"{wing}*.py"):
            module.unlink()
    names = "|".join(wings)
    for name in LISTS:
        lines = (checkout / name).read_text().splitlines(keepends=True)
        (checkout / name).write_text("".join(line for line in lines if not re.search(rf"\b({names})(_|\b)", line)))
    for test in (checkout / "tests").rglob("test_*.py"):  # Some tests cover this wing and others.
        if re.search(rf"(blogapi\.wings(\.| import )|tests\.)({names})\b", test.read_text()):
            test.unlink()


IMPORTS = """
import importlib.util, sys
found = [name for name in sys.argv.pop(1).split("-") if importlib.util.find_spec(f"blogapi.wings.{name}")]
assert not found, found
import blogapi.factory, blogapi.server.background, blogapi.server.worker
from blogapi.cli import main
main()
"""
WINGS = ["micropub", "owner", "sync", "transfer", "docs"]
ALONE = ["micropub"], ["owner"], ["sync"], ["sync", "transfer"], ["docs"]


@pytest.mark.slow
@pytest.mark.parametrize("wings", [*ALONE, WINGS], ids="-".join)
def test_the_core_and_its_tests_work_without_a_wing(checkout, wings):
    without(checkout, *wings)
    options = {"cwd": checkout, "env": os.environ | {"PYTHONPATH": str(checkout)}, "capture_output": True, "text": True}
    ended = subprocess.run([sys.executable, "-c", IMPORTS, "-".join(wings), "--help"], **options)
    assert (ended.returncode, ended.stderr) == (0, "")
    if wings == WINGS:
        tests = ["tests/posts/test_create.py", "tests/posts/test_list.py"]
        ended = subprocess.run([sys.executable, "-m", "pytest", "-q", "-n", "0", *tests], **options)
        assert ended.returncode == 0, ended.stdout[-3000:]
