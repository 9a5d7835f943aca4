"""Push and pull where files, posts or a whole database seem to be gone, and with copies of a folder."""

import shutil
import subprocess

import pytest

from blogapi.wings.sync import state
from tests.blogs import write_files
from tests.service import BIN, without_rights
from tests.sync.conftest import GONE_THERE, WAYS_OUT, contents, counts, edit, read_state, write_state


@pytest.mark.parametrize("command", ["push", "pull"])
def test_another_address_or_another_database_is_refused(run, synced, command, blog):
    here = synced(a="# A\n")
    address, other = f"http://127.0.0.1:{blog.port}", f"http://localhost:{blog.port}"
    refused = f"{here} belongs to {address}: --move-to {other} connects it with that address"
    assert run(command, here, to=other) == (1, [refused])
    assert run(command, here, "--move-to", other) == (0, [counts(unchanged=1)])
    state = (here / ".blogapi.json").read_text().replace('"created_at": "20', '"created_at": "19')
    (here / ".blogapi.json").write_text(state)
    refused = f"{other} has none of these posts: --move-to {other} compares all files with it"
    assert run(command, here, to=other) == (1, [refused])
    assert run(command, here, "--move-to", other) == (0, [counts(unchanged=1)])


def test_connecting_another_address_overwrites_and_creates_nothing(run, synced, change, there, blog):
    here = synced(a="# A\n", b="# B\n", c="# C\n")
    change("a", content="Theirs.")
    blog.request("DELETE", "/v1/posts/by-slug/b")
    other = f"http://localhost:{blog.port}"
    assert run("pull", here, "--move-to", other)[1][:2] == ["updated a.md", GONE_THERE.format("b.md")]
    assert run("push", here, to=other)[1][0] == GONE_THERE.format("b.md")
    assert there().keys() == {"a", "c"}


def test_pull_removes_no_file_because_a_database_was_replaced(run, synced, blog):
    here = synced(a="# A\n", b="# B\n", c="# C\n")
    head, entries = read_state(here)
    entries["c.md"]["id"] = "999999"  # as if it was created after a backup that was restored since
    entries["b.md"]["created_at"] = "2020-01-01T00:00:00Z"  # as if another post got its id after that
    write_state(here, head, entries)
    lost = (
        "its post is gone and not in the trash (deleted for good, or a backup was restored):"
        " push --recreate creates it again, or delete the file"
    )
    assert [line for line in run("pull", here, "--delete")[1] if "conflict" in line and ":" in line] == [
        f"conflict {name}.md: {lost}" for name in "bc"
    ]
    for entry in entries.values():
        entry["id"] += "000000"
    write_state(here, head, entries)
    assert run("pull", here, "--delete")[1][0].endswith(" compares all files with it")
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
            found = ended.returncode, "gone" in ended.stdout, "deleted" in ended.stdout
            assert found == (command == "push", False, False)  # The second time, nobody needs to be told.
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
    post_id, created_at = there()["tea"]["id"], there()["tea"]["created_at"]
    (here / "tea.md").unlink()
    folder(green=f'---\nid: "{post_id}"\ncreated_at: {created_at}\nslug: green-tea\nstatus: published\n---\nTea.\n')
    assert run("push", here)[1] == ["renamed green.md: was tea.md", "updated green.md", counts(updated=1, renamed=1)]
    assert (there()["green-tea"]["id"], there()["green-tea"]["former_slugs"]) == (post_id, ["tea"])


def test_a_synced_folder_is_no_part_of_one_above_it_and_none_below_it_can_be_synced(run, synced, there):
    here = synced(a="# A\n")
    left_out = f"Left out: 1 file of another folder that is kept in sync ({here}/a.md)."
    assert run("push", here.parent)[1][-2:] == [left_out, counts()]
    (here.parent / ".blogapi.json").unlink()
    write_files(here / "sub", {"b.md": "# B\n"})
    refused = f"{here}/sub is part of {here}, which is kept in sync: give {here} instead"
    assert run("push", here / "sub") == (1, [refused])
    assert there().keys() == {"a"}


# A database that was restored from a backup, and files that change or vanish


def test_a_file_is_no_post_of_another_database_because_of_a_number_in_it(run, synced, folder, there, tmp_path):
    here = synced(one="# One\n\nFirst.\n")
    post_id = there()["one"]["id"]
    (here / "one.md").unlink()
    folder(note=f"---\nid: {post_id}\n---\n# Note\n\nOther.\n")
    run("push", here)
    assert [there()[slug]["content"] for slug in ("one", "note")] == ["# One\n\nFirst.\n", "# Note\n\nOther.\n"]


def test_a_file_that_is_moved_and_edited_without_a_slug_keeps_its_post(run, synced, there, tmp_path):
    here = synced(a="---\nstatus: published\n---\n# A\n", b="# B\n", c="# C\n")
    (here / "a.md").unlink()
    write_files(here, {"new/a.md": "# A, new\n"})
    moved = "{} is gone, and {} has the same slug: if it is that file, write `slug: a` into it, else another slug"
    conflicts = [f"conflict new/a.md: {moved.format('a.md', 'it')}", f"conflict a.md: {moved.format('it', 'new/a.md')}"]
    for command in (("push", "--dry-run"), ("push",), ("pull",), ("push", "--delete"), ("pull", "--theirs")):
        status, lines = run(*command, here)
        assert (status, {*lines} - {*conflicts}) == (2, {*lines[-1:]}), command
    write_files(here, {"new/a.md": "---\nslug: a\n---\n# A, new\n"})
    assert run("push", here, "--delete")[1][:2] == ["renamed new/a.md: was a.md", "updated new/a.md"]
    assert (there()["a"]["content"], there()["a"]["status"]) == ("# A, new\n", "published")


@pytest.mark.parametrize(("gone", "total"), [(6, 8), (1, 1)])
@pytest.mark.parametrize(("command", "side"), [("push", "files"), ("pull", "posts")])
def test_most_are_not_deleted_unless_that_is_said(run, synced, blog, there, command, side, gone, total):
    here = synced(**{f"p{number}": f"# {number}\n" for number in range(total)})
    for number in range(gone):
        if side == "files":
            (here / f"p{number}.md").unlink()
        else:
            blog.request("DELETE", f"/v1/posts/by-slug/p{number}")
    refused = f"{gone} of {total} {side} are gone: if that is right, use --delete-all"
    assert run(command, here, "--delete") == (1, [refused])
    assert run(command, here, "--delete-all")[1][-1] == counts(unchanged=total - gone, deleted=gone)


def test_a_state_from_elsewhere_is_believed_only_for_files_that_are_as_it_says(run, synced, folder, there, tmp_path):
    here = synced(a="# A\n", b="# B\n")
    other = shutil.copytree(here, tmp_path / "other")
    edit(here / "a.md", "# A", "# A, newer")
    folder(c="# C\n")
    run("push", here)
    shutil.copy(here / ".blogapi.json", other)  # before the files
    conflict = f"conflict a.md: the post a differs from the file: {WAYS_OUT}"
    assert run("push", other, "--delete")[1] == [conflict, counts(unchanged=1, conflict=1)]
    assert there().keys() == {"a", "b", "c"}


def test_the_recorded_time_zone_counts_where_none_is_set_and_no_other_is_accepted(run, folder, there, monkeypatch):
    here = folder(a="---\ndate: 2025-01-02 10:00\n---\n# A\n")
    monkeypatch.setenv("BLOGAPI_TIMEZONE", "Asia/Tokyo")
    run("push", here)
    assert there()["a"]["published_at"] == "2025-01-02T01:00:00Z"
    monkeypatch.delenv("BLOGAPI_TIMEZONE")
    assert run("push", here) == (0, [counts(unchanged=1)])
    edit(here / "a.md", "# A", "# B")
    run("push", here)
    assert there()["a"]["published_at"] == "2025-01-02T01:00:00Z"
    monkeypatch.setenv("BLOGAPI_TIMEZONE", "Europe/Berlin")
    status, lines = run("push", here)
    assert status == 1
    assert lines[0].startswith("the folder was synced with BLOGAPI_TIMEZONE=Asia/Tokyo, which is Europe/Berlin now: ")


def test_what_a_post_gets_there_is_added_to_a_file_without_it(run, synced, change):
    here = synced(a="# A\n")
    change("a", slug="b", status="published", published_at="2020-01-01T00:00:00Z")
    assert run("push", here)[1] == [counts(unchanged=1)]
    run("pull", here)
    added = "---\nstatus: published\nslug: b\npublished_at: 2020-01-01T00:00:00Z\n---\n\n"
    assert contents(here) == {"a.md": added.encode() + b"# A\n"}


def test_conflicted_copies_are_left_out(run, folder, there):
    text = f"---\nauthor: {'Ann ' * 20}\ntitle: A\n---\n\nWords.\n"
    here = folder(a=text)
    names = (
        "a (Ann's conflicted copy 2026-11-20).md",
        "a.sync-conflict-20261120-101010-ABCDEFG.md",
        "a_conflict-20261120-101010.md",
        "a 2.md",
        "a-DESKTOP-AB12CD3.md",
    )
    others = {"a 3.md": "# Part three\n", "a 4.md": f"---\nauthor: {'Ann ' * 20}\ntitle: Part four\n---\n\nWords.\n"}
    write_files(here, dict.fromkeys(names, f"{text}More.\n") | others)
    said = " ".join(run("push", here)[1])
    assert "Left out: 3 duplicates from a conflict (" in said
    assert "Left out: 2 duplicates of another file (" in said
    assert there().keys() == {"a", "a-3", "a-4"}


def test_a_post_that_is_created_again_replaces_no_other_post_with_its_slug(run, synced, blog, there):
    here = synced(a="# A\n", b="# B\n")
    blog.request("DELETE", "/v1/posts/by-slug/a?permanent=true")
    blog.request("PUT", "/v1/posts/by-slug/a", {"title": "Stranger", "content": "Stranger"})
    for options in (["--recreate"], ["--recreate", "--overwrite"]):
        status, lines = run("push", here, *options)
        assert (status, lines[0]) == (2, "conflict a.md: its post is gone, and another post has the slug a")
    assert there()["a"]["content"] == "Stranger"


def test_a_post_that_was_only_touched_is_unchanged(run, synced):
    here = synced(a="# A\n")
    known = here / ".blogapi.json"
    known.write_text(known.read_text().replace('"updated_at": "20', '"updated_at": "19'))
    assert run("push", here) == (0, [counts(unchanged=1)])


def test_a_state_that_is_too_large_is_refused(run, synced, monkeypatch):
    here = synced(a="# A\n")
    monkeypatch.setattr(state, "MAX_STATE_BYTES", 100)
    refused = f"{here}/.blogapi.json is too large: delete it, and all files are compared with the posts"
    assert run("push", here) == (1, [refused])


def test_nothing_changes_if_the_state_cannot_be_written(run, synced, folder, change, there):
    here = synced(a="# A\n", b="# B\n")
    folder(a="# A, here\n")
    change("b", content="There.\n")
    (here / "..blogapi.json.part").mkdir()  # in the way
    for command in ("push", "pull"):
        status, lines = run(command, here)
        assert (status, lines[-1].startswith(f"{here}: ")) == (1, True), command
    assert there()["a"]["content"] == "# A\n"
    assert contents(here)["b.md"] == b"# B\n"
    (here / "..blogapi.json.part").rmdir()
    assert [run(command, here)[0] for command in ("push", "pull")] == [0, 0]


def test_force_names_the_options_of_its_command(run, folder):
    for command, option in (("push", "--overwrite"), ("pull", "--theirs")):
        status, lines = run(command, folder(a="# A\n"), "--force")
        found = [each for each in ("--overwrite", "--theirs") if each in lines[-1]]
        assert (status, found) == (2, [option])
