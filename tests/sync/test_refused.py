"""Push and pull: files that cannot be read, sent or written."""

import shutil
import subprocess

import pytest

from tests.blogs import write_files
from tests.cases import cases
from tests.service import BIN, without_rights
from tests.sync.conftest import contents, counts, edit

MARKS = "<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\n"


def test_a_file_that_cannot_be_read_fails_once_and_is_named_each_time(run, folder, there):
    here = folder(a="# A\n", bad="---\n: x\n---\n")
    assert run("push", here)[0] == 1
    status, lines = run("push", here)
    assert (status, lines[0].partition(": ")[0]) == (0, "skipped bad.md:2")
    assert lines[-1] == counts(unchanged=1, skipped=1)
    assert run("push", here, "--quiet") == (0, [])
    edit(here / "bad.md", ": x", ": y")
    assert run("pull", here, "--quiet")[0] == 1
    (here / "bad.md").write_text("# Good\n")
    assert run("push", here) == (0, ["created bad.md", counts(created=1, unchanged=1)])


@cases(
    ("text", "line"),
    ("# A\n\nlong and valuable" + "\0" * 50, 0),
    (f"# A\n\n{MARKS}", 3),
    (f"---\ntitle: A\n{MARKS}---\n\nText.\n", 3),
    (f"# A\n\n{MARKS}".replace("mine", "Mine\n======="), 3),
    (f"# A\n\n{MARKS}".replace("\n", "\r\n"), 3),
)
def test_a_torn_file_is_refused(run, synced, there, text, line):
    here = synced(a="# A\n\nlong and valuable\n")
    (here / "a.md").write_bytes(text.encode())
    status, lines = run("push", here)
    assert (status, lines[0].partition(": ")[0]) == (1, f"failed a.md:{line}" if line else "failed a.md")
    assert run("push", here)[0] == 0  # Its text could not be read last time either.
    assert there()["a"]["content"] == "# A\n\nlong and valuable\n"


def test_conflict_markers_are_text_unless_the_conflict_is_complete_or_if_a_pull_wrote_them(run, synced, there, change):
    here = synced(a="# A\n\nHeading\n=======\n\n>>>>>>> quoted\n\n    <<<<<<< HEAD\n")
    assert run("push", here) == (0, [counts(unchanged=1)])
    change("a", content=MARKS)
    assert (run("pull", here)[1][0], run("push", here)) == ("updated a.md", (0, [counts(unchanged=1)]))


@pytest.mark.slow
def test_a_merge_of_git_is_sent_once_it_is_resolved(run, folder, there, tmp_path):
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    here = folder(a="# A\n\nOne.\n")

    def git(*arguments):
        own = ["-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", "-C", here, *own, *arguments], capture_output=True, check=False)

    git("init", "-q", "-b", "main")
    options = (here, "--state", here / ".blogapi.sync")
    run("push", *options)
    git("add", ".")
    git("commit", "-qm", "1")
    git("checkout", "-qb", "other")
    edit(here / "a.md", "One.", "Two.")
    git("commit", "-qam", "2")
    git("checkout", "-q", "main")
    edit(here / "a.md", "One.", "Three.")
    git("commit", "-qam", "3")
    assert git("merge", "-q", "other").returncode
    assert (run("push", *options)[0], there()["a"]["content"]) == (1, "# A\n\nOne.\n")
    git("checkout", "--theirs", "a.md")
    assert (run("push", *options)[0], there()["a"]["content"]) == (0, "# A\n\nTwo.\n")


def test_a_name_of_255_bytes_can_be_pushed_pulled_and_set_aside(run, synced, there, change):
    name = "ä" * 126  # 252 bytes
    here = synced(**{name: "# Long\n"})
    (post,) = there().values()
    edit(here / f"{name}.md", "# Long", "# Mine")
    change(post["slug"], content="# Theirs\n")
    status, lines = run("pull", here, "--theirs")
    assert (status, lines[0].partition(": ")[0]) == (0, f"updated {name}.md")
    assert sorted(data.rpartition(b"# ")[2] for data in contents(here).values()) == [b"Mine\n", b"Theirs\n"]
    assert run("push", here)[0] == 0


def test_a_file_that_cannot_be_written_fails_each_time_until_it_works(run, synced, change):
    here = synced(a="# A\n", b="# B\n")
    (here / ".a.md.part").mkdir()
    for slug in "ab":
        change(slug, content="Theirs.")
    assert run("pull", here)[0] == 1
    assert b"Theirs." in contents(here)["b.md"]
    status, lines = run("pull", here, "--quiet")
    assert (status, lines[0].partition(": ")[0]) == (1, "failed a.md")
    (here / ".a.md.part").rmdir()
    assert run("pull", here)[0] == 0
    assert b"Theirs." in contents(here)["a.md"]


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


@pytest.mark.slow
def test_a_full_disk_behind_the_output_is_not_blamed_on_the_folder(run, folder, there):
    here = folder(a="# A\n")
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [str(BIN / "blogapi"), "push", str(here)]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    said = "blogapi: cannot print the results: No space left on device; run the command again\n"
    assert (ended.returncode, ended.stderr) == (1, said)
    assert there().keys() == {"a"}


@pytest.mark.slow
def test_a_file_that_cannot_be_seen_is_not_gone(run, folder, there):
    here = folder(a="# A\n")
    write_files(here / "shut", {"b.md": "# B\n"})
    run("push", here)
    (here / "shut").chmod(0)
    try:
        for command in ("push", "pull"):
            arguments = without_rights(str(BIN / "blogapi"), command, "--delete", str(here))
            ended = subprocess.run(arguments, capture_output=True, text=True)
            outcome = ended.returncode, "gone" in ended.stdout, "deleted" in ended.stdout
            assert outcome == (command == "push", False, False)  # The second time, nobody needs to be told.
            assert "shut: Permission denied" in ended.stderr
    finally:
        (here / "shut").chmod(0o755)
    assert there().keys() == {"a", "b"}
