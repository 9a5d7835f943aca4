"""Push and pull: where the state of a folder is valid, and how it is stored."""

import json
import os
import shutil

import pytest

from blogapi.wings.sync import state as states
from blogapi.wings.sync.compare import WAYS_OUT
from tests.sync.conftest import CHANGED_THERE, contents, counts, edit, next_second, read_state, write_state

DIFFERS = f"conflict a.md: the post a differs from the file: {WAYS_OUT}"

DAMAGE = (
    ('"slug": "a"', '"slug": 1'),
    ('"slug": "a"', '"slug": "a", "former_slugs": 5'),
    ('"slug": "a"', '"slug": "a", "former_slugs": [1]'),
    ('"slug": "a"', '"slug": "a", "published_at": {}'),
    ('"status": "draft"', '"status": "gone"'),
    ('"fingerprint"', '"print"'),
    ("{", "[" * 100_000 + "{"),
    ("", "\0"),
)


# Where a state counts


@pytest.fixture
def on_two_machines(run, synced, tmp_path):
    """Two copies of a folder with these files, in sync with the service: here, and on the machine b."""

    def copies(**texts):
        here = synced(**texts)
        other = shutil.copytree(here, tmp_path / "other")
        run("push", other, on="b")
        return here, other

    return copies


def test_a_state_that_arrives_before_its_file_overwrites_nothing(run, on_two_machines, there):
    here, other = on_two_machines(a="# A\n\nOld.\n", b="# B\n")
    edit(here / "a.md", "Old.", "An hour of work.")
    next_second()
    run("push", here)
    shutil.copy(here / ".blogapi.json", other)
    assert run("push", other, on="b") == (0, [CHANGED_THERE.format("a.md"), counts(changed_there=1, unchanged=1)])
    assert there()["a"]["content"] == "# A\n\nAn hour of work.\n"
    assert run("pull", other, on="b")[1][0] == "updated a.md"


def test_an_edit_is_sent_if_a_state_from_elsewhere_agrees_with_the_local_one(run, on_two_machines, there):
    here, other = on_two_machines(a="# A\n", b="# B\n")
    edit(other / "a.md", "# A", "# A, edited")
    edit(here / "b.md", "# B", "# B, edited")
    run("push", here)
    for name in (".blogapi.json", "b.md"):
        shutil.copy(here / name, other)
    assert run("push", other, on="b") == (0, ["updated a.md", counts(updated=1, unchanged=1)])
    (other / "a.md").unlink()
    assert (run("push", other, "--delete", on="b")[1][0], there().keys()) == ("deleted a.md", {"b"})


def test_a_state_that_arrives_before_files_that_were_renamed_makes_no_file_another(run, on_two_machines, there):
    here, other = on_two_machines(a="# A\n", b="# B\n")
    for old, new in (("a.md", "old.md"), ("b.md", "a.md"), ("old.md", "b.md")):
        (here / old).rename(here / new)
    assert run("push", here)[1][-1] == counts(unchanged=2, renamed=2)
    shutil.copy(here / ".blogapi.json", other)
    edit(other / "a.md", "# A", "# A, edited")
    assert run("push", other, on="b")[0] == 2
    assert [post["content"] for post in there().values()] == ["# B\n", "# A\n"]


def test_a_copy_of_the_folder_on_the_same_machine_has_no_state_of_its_own(run, synced, folder, there, tmp_path):
    here = synced(a="# A\n", b="# B\n")
    other = shutil.copytree(here, tmp_path / "other")
    edit(here / "a.md", "# A", "# A, newer")
    folder(c="# C\n")
    run("push", here)
    edit(other / "a.md", "# A", "# A, edited in the copy")
    assert run("push", other) == (2, [DIFFERS, counts(unchanged=1, conflict=1)])
    shutil.copy(here / ".blogapi.json", other)  # before the files
    assert run("push", other, "--delete") == (2, [DIFFERS, counts(unchanged=1, conflict=1)])
    contents_there = {slug: post["content"] for slug, post in there().items()}
    assert contents_there == {"a": "# A, newer\n", "b": "# B\n", "c": "# C\n"}
    assert len([*(tmp_path / ".own/blogapi").glob("*.json")]) == 2


@pytest.mark.parametrize("how", ["the folder was moved", "the folder was moved without a state folder", "the disk"])
def test_a_state_stays_valid_if_its_path_or_its_inode_numbers_change(run, synced, monkeypatch, tmp_path, how):
    if how.endswith("without a state folder"):
        (tmp_path / "no folder").write_text("")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no folder"))
    here = synced(a="# A\n", b="# B\n")
    if how == "the disk":
        number = (here / ".blogapi.json").stat().st_ino
        shutil.copy2(here / ".blogapi.json", here / "again")
        (here / "again").replace(here / ".blogapi.json")
        assert (here / ".blogapi.json").stat().st_ino != number
    else:
        here = here.rename(tmp_path / "moved")
    edit(here / "a.md", "# A", "# A, edited")
    assert run("push", here) == (0, ["updated a.md", counts(updated=1, unchanged=1)])


def test_a_restored_backup_of_the_folder_is_no_edit(run, synced, there, tmp_path):
    here = synced(a="# A\n", b="# B\n")
    backup = shutil.copytree(here, tmp_path / "backup")
    edit(here / "a.md", "# A", "# A, newer")
    next_second()
    run("push", here)
    shutil.copytree(backup, here, dirs_exist_ok=True)
    assert run("push", here)[1][0] == CHANGED_THERE.format("a.md")
    assert there()["a"]["content"] == "# A, newer\n"


def test_only_the_newest_copies_of_states_are_kept_and_only_for_their_user(run, synced, monkeypatch, own_states):
    monkeypatch.setattr(states, "MAX_COPIES", 2)
    own_states.mkdir(mode=0o700, parents=True)
    for number in range(4):
        (own_states / f"{number}.json").write_text("")
        os.utime(own_states / f"{number}.json", (number, number))
    synced(a="# A\n")
    assert {path.name for path in own_states.iterdir()} > {"3.json"}
    assert len([*own_states.iterdir()]) == 2
    shutil.rmtree(own_states)
    synced(a="# A, edited\n")
    assert own_states.stat().st_mode & 0o777 == 0o700


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
    assert lines[0].startswith("the folder was synced with BLOGAPI_TIMEZONE=Asia/Tokyo, but it is now Europe/Berlin: ")


# States in a repository


def test_a_state_in_a_repository_works_in_every_clone(run, folder, there, tmp_path):
    here = folder(a="# A\n", b="# B\n")
    run("push", here, "--state", here / ".blogapi.sync")
    assert not (here / ".blogapi.json").exists()
    assert str(tmp_path) not in (here / ".blogapi.sync").read_text()
    clone = shutil.copytree(here, tmp_path / "clone")
    edit(clone / "a.md", "# A", "# New A")
    (clone / "b.md").unlink()
    _, lines = run("push", clone, "--state", clone / ".blogapi.sync", "--delete")
    assert sorted(lines) == [counts(updated=1, deleted=1), "deleted b.md", "updated a.md"]


def test_a_state_in_a_repository_is_written_only_with_a_change(run, folder, change):
    here = folder(**{name: f"# {name}\n" for name in "abcd"})
    options = here, "--state", here / ".blogapi.sync"

    def state():
        return (here / ".blogapi.sync").read_bytes(), (here / ".blogapi.sync").stat().st_ctime_ns

    run("push", *options)
    for excerpt in ("one", "two"):
        before = state()
        for command in ("push", "pull", "status", "push"):
            assert (run(command, *options)[0], state()) == (0, before), (excerpt, command)
        edit(here / "a.md", "# ", "# New ")
        change("b", excerpt=excerpt)
        run("push", *options)
        run("pull", *options)
        assert state()[0] != before[0]


def test_the_states_of_two_clones_can_be_merged_line_by_line(run, folder, there):
    here = folder(a="# A\n", b="# B\n", c="# C\n")
    options, own = (here, "--state", here / ".blogapi.sync"), here / ".blogapi.sync"
    run("push", *options)
    before = own.read_text()
    next_second()
    (here / "a.md").rename(here / "new.md")
    (here / "b.md").unlink()
    edit(here / "c.md", "# C", "# C, newer")
    run("push", *options, "--delete")
    after = own.read_text()
    for merged in (before + after, after + before):  # The newest entry of a file counts.
        own.write_text(merged)
        assert run("push", *options, "--delete")[1][-1].startswith("created 0, updated 0, "), merged
        assert there().keys() == {"a", "c"}, merged
    assert run("status", *options) == (0, [f"would be {counts(unchanged=2)}"])


def test_a_rename_and_an_edit_that_git_merged_into_one_file_make_no_second_post(run, on_two_machines, there):
    here, other = on_two_machines(a="# A\n", b="# B\n")
    next_second()
    edit(other / "a.md", "# A", "# A, edited")
    run("push", other, on="b")
    (here / "a.md").rename(here / "new.md")
    run("push", here)
    (other / "a.md").rename(other / "new.md")
    states = [(folder / ".blogapi.json").read_text() for folder in (other, here)]
    (other / "merged").write_text("".join(states))
    next_second()
    (other / "merged").replace(other / ".blogapi.json")
    os.utime(other / ".blogapi.json")
    assert run("push", other, on="b")[1][-1].startswith("created 0, updated 0, ")
    assert there().keys() == {"a", "b"}


def test_a_text_that_git_reverted_together_with_the_state_is_a_conflict(run, synced, there):
    here = synced(a="# A\n")
    options, own = (here, "--state", here / ".blogapi.sync"), here / ".blogapi.sync"
    run("push", *options)
    text, old = (here / "a.md").read_bytes(), own.read_bytes()
    next_second()
    edit(here / "a.md", "# A", "# A, newer")
    run("push", *options)
    (here / "a.md").write_bytes(text)
    own.write_bytes(old)
    conflict = [DIFFERS, counts(conflict=1)]
    assert [run(command, *options) for command in ("push", "pull")] == [(2, conflict)] * 2
    assert run("push", *options, on="b")[1][0] == CHANGED_THERE.format("a.md")
    assert run("push", *options, "--overwrite")[1][0] == "updated a.md"
    assert there()["a"]["content"] == "# A\n"


# How it is stored


def test_a_state_of_version_1_2_is_converted(run, synced, there, change):
    here = synced(a="# A\n", b="# B\n", c="# C\n")
    head, entries = read_state(here)
    for entry in entries.values():
        del entry["seen"]
        entry["updated_at"] = f"{entry['updated_at'][:4]}-01-01T00:00:00Z"  # 1.2 recorded an earlier time, too
    (here / ".blogapi.json").write_text(json.dumps({"remote": head["remote"], "files": entries}))
    edit(here / "a.md", "# A", "# New A")
    change("b", content="Theirs.")
    (here / "c.md").unlink()
    run("pull", here)
    _, lines = run("push", here, "--delete")
    assert sorted(lines) == [counts(updated=1, unchanged=1, deleted=1), "deleted c.md", "updated a.md"]
    assert contents(here)["b.md"].endswith(b"Theirs.")


@pytest.mark.parametrize("place", ["here", "elsewhere"])
def test_a_state_of_version_1_3_is_read(run, synced, own_states, place):
    here = synced(a="# A\n", b="# B\n")
    shutil.rmtree(own_states)
    head, entries = read_state(here)
    del head["id"]
    entries["bad.md"] = "0" * 64  # 1.3 wrote such a line for a file that it could not read
    write_state(here, head, entries)
    numbers = f"{here.stat().st_ino}-{(here / '.blogapi.json').stat().st_ino}"
    head["places"] = [numbers if place == "here" else "1-2", "host:/somewhere"]
    write_state(here, head, entries)
    edit(here / "a.md", "# A", "# A, edited")
    said = ["updated a.md", counts(updated=1, unchanged=1)]
    if place == "elsewhere":
        said = [DIFFERS, counts(unchanged=1, conflict=1)]
    assert run("push", here)[1] == said


def test_a_torn_journal_loses_only_its_last_line(run, synced, there):
    here = synced(a="# A\n", b="# B\n")
    state = here / ".blogapi.json"
    whole = state.read_bytes()
    assert (whole.count(b"\n"), len(whole) < 3 * 700) == (3, True)  # one for the folder, and one for each file
    for data in (whole[:-40], whole + b'["c.md", {"id"', whole + b"\0" * 50):
        state.write_bytes(data)
        assert run("push", here) == (0, [counts(unchanged=2)])
    assert there().keys() == {"a", "b"}


def test_a_damaged_or_too_large_state_is_refused_before_anything_changes(run, synced, there, monkeypatch):
    here = synced(a="# A\n")
    edit(here / "a.md", "# A", "# B")
    state, before, posts = here / ".blogapi.json", contents(here), there()
    whole = state.read_text()
    for old, new in DAMAGE:
        state.write_text(whole.replace(old, new, 1))
        reason = f"{state} is damaged: delete it to compare all files with the posts"
        for command in ("push", "pull"):
            assert run(command, here) == (1, [reason]), new[:50]
    monkeypatch.setattr(states, "MAX_STATE_BYTES", 100)
    assert run("push", here) == (1, [reason.replace("is damaged", "is too large")])
    assert (contents(here), there()) == (before, posts)
