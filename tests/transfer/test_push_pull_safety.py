"""Push and pull where files, posts or a whole database seem to be gone, and with copies of a folder."""

import json
import shutil
import subprocess

import pytest

from tests.blogs import write_files
from tests.service import BIN, without_rights
from tests.transfer.conftest import GONE_THERE, contents, counts


@pytest.mark.parametrize("command", ["push", "pull"])
def test_another_address_or_another_database_is_refused(run, folder, command, blog):
    here = folder(a="# A\n")
    run("push", here)
    address, other = f"http://127.0.0.1:{blog.port}", f"http://localhost:{blog.port}"
    refused = f"{here} belongs to {address}: pull --force connects it with {other}"
    assert run(command, here, to=other) == (1, [refused])
    assert run(command, here, "--force", to=other) == (0, [counts(unchanged=1)])
    state = (here / ".blogapi.json").read_text().replace('"created_at": "20', '"created_at": "19')
    (here / ".blogapi.json").write_text(state)
    refused = f"{other} has none of these posts: --force compares all files with it"
    assert run(command, here, to=other) == (1, [refused])
    assert run(command, here, "--force", to=other) == (0, [counts(unchanged=1)])


def test_connecting_another_address_overwrites_and_creates_nothing(run, folder, change, there, blog):
    here = folder(a="# A\n", b="# B\n", c="# C\n")
    run("push", here)
    change("a", content="Theirs.")
    blog.request("DELETE", "/v1/posts/by-slug/b")
    other = f"http://localhost:{blog.port}"
    assert run("pull", here, "--force", to=other)[1][:2] == ["updated a.md", GONE_THERE.format("b.md")]
    assert run("push", here, to=other)[1][0] == GONE_THERE.format("b.md")
    assert there().keys() == {"a", "c"}


def test_pull_removes_no_file_because_a_database_was_replaced(run, folder, blog):
    here = folder(a="# A\n", b="# B\n", c="# C\n")
    run("push", here)
    state = json.loads((here / ".blogapi.json").read_text())
    state["files"]["c.md"]["id"] = "999999"  # as if it was created after a backup that was restored since
    state["files"]["b.md"]["created_at"] = "2020-01-01T00:00:00Z"  # as if another post got its id after that
    (here / ".blogapi.json").write_text(json.dumps(state))
    lost = "its post was not deleted, but is gone, as after restoring a backup: push --force creates it again"
    lost += ", pull --delete --force removes the file"
    assert [line for line in run("pull", here, "--delete")[1] if "conflict" in line and ":" in line] == [
        f"conflict {name}.md: {lost}" for name in "bc"
    ]
    for entry in state["files"].values():
        entry["id"] += "000000"
    (here / ".blogapi.json").write_text(json.dumps(state))
    assert run("pull", here, "--delete")[1][0].endswith("has none of these posts: --force compares all files with it")
    assert contents(here).keys() >= {"a.md", "b.md", "c.md"}


@pytest.mark.slow
def test_a_file_that_cannot_be_seen_is_not_gone(run, folder, blog, there):
    here = folder(a="# A\n")
    write_files(here / "shut", {"b.md": "# B\n"})
    run("push", here)
    environ = blog.environ | {"BLOGAPI_KEY": blog.key, "BLOGAPI_REMOTE": f"http://127.0.0.1:{blog.port}"}
    (here / "shut").chmod(0)
    try:
        for command in ("push", "pull"):
            arguments = without_rights(str(BIN / "blogapi"), command, "--delete", str(here))
            ended = subprocess.run(arguments, env=environ, capture_output=True, text=True)
            assert (ended.returncode, "gone" in ended.stdout, "deleted" in ended.stdout) == (1, False, False)
            assert "shut: Permission denied" in ended.stderr
    finally:
        (here / "shut").chmod(0o755)
    assert there().keys() == {"a", "b"}


def test_a_copy_of_the_folder_without_its_state_creates_no_post_twice(run, folder, change, there, tmp_path):
    here = folder(a="# A\n", b="---\nslug: b\n---\n# B\n")
    write_files(here / "2024-01-01", {"b.md": "# Another B\n"})
    run("push", here)
    slugs = there().keys()
    assert slugs > {"a", "b"}
    (other,) = slugs - {"a", "b"}
    for slug in (other, "a"):
        change(slug, excerpt="New", slug=f"{slug}-new")
    run("pull", here)
    shutil.copytree(here, tmp_path / "copy", ignore=shutil.ignore_patterns(".blogapi.json"))
    assert run("push", tmp_path / "copy") == (0, [counts(unchanged=3)])
    assert there().keys() == {"a-new", "b", f"{other}-new"}


def test_a_file_renamed_together_with_its_slug_is_still_the_file_of_its_post(run, folder, there, change, tmp_path):
    folder(tea="---\nslug: tea\nstatus: published\n---\nTea.\n")
    here = tmp_path / "folder"
    run("push", here)
    post_id = there()["tea"]["id"]
    (here / "tea.md").unlink()
    folder(green=f'---\nid: "{post_id}"\nslug: green-tea\nstatus: published\n---\nTea.\n')
    assert run("push", here)[1] == ["renamed green.md: was tea.md", "updated green.md", counts(updated=1, renamed=1)]
    assert (there()["green-tea"]["id"], there()["green-tea"]["former_slugs"]) == (post_id, ["tea"])


def test_a_folder_below_that_is_kept_in_sync_itself_is_left_out(run, folder, there):
    here = folder(a="# A\n")
    run("push", here)
    assert run("push", here.parent)[1][-2:] == [
        "Left out: 1 file of another folder that is kept in sync.",
        counts(),
    ]
    assert there().keys() == {"a"}
