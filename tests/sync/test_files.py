"""Push and pull: which files are sent, under which names, and what else the options say."""

import json
import re
import shutil
import subprocess

import pytest

from tests.blogs import write_files
from tests.images.pictures import png
from tests.service import BIN
from tests.sync.conftest import CHANGED_HERE, WAYS_OUT, contents, counts, edit, read_state


def test_ignored_files_and_copies_made_of_conflicts_are_left_out(run, folder, there, change):
    here = folder(hello="# Hello\n", kept="# Kept\n", secret="# Secret\n")
    names = (
        "hello (1).md",
        "hello copy.md",
        "hello - Copy.md",
        "hello.sync-conflict-20261120-101010-ABCDEFG.md",
        "hello (Ann's conflicted copy 2026-11-20).md",
        "hello (conflicted copy 2026-11-20 101010).md",
        "Part (1).md",  # There is no Part.md.
    )
    write_files(here, dict.fromkeys(names, "# Copy\n"))
    write_files(here / "private", {"note.md": "# Note\n", ".gitignore": "!note.md\n"})  # git would ignore it, too
    (here / ".gitignore").write_text("private/\n/kept.md\n")
    (here / ".blogapiignore").write_text("!kept.md\nsecret.*\n")
    _, lines = run("push", here)
    assert there().keys() == {"hello", "kept", "part-1"}
    assert {line.partition(" (")[0] for line in lines if line.endswith(").")} == {
        "Left out: 3 duplicates of another file",
        "Left out: 3 duplicates from a conflict",
        "Left out: 2 files to ignore",
    }
    run("push", here, "--no-gitignore")
    assert there().keys() == {"hello", "kept", "part-1", "note"}
    change("note", title="Changed")
    before = contents(here)
    assert run("pull", here)[0] == 0
    assert contents(here) == before
    run("push", here, "--delete")
    assert "note" in there()


def test_an_ignore_file_that_cannot_be_read_stops_the_push(run, folder, there):
    here = folder(a="# A\n")
    for data in (b"\xff", b"a\n" * 40_000):
        (here / ".blogapiignore").write_bytes(data)
        status, lines = run("push", here)
        assert (status, lines[-1].startswith(".blogapiignore cannot be used: ")) == (1, True)
    assert there() == {}


def test_names_and_slugs_do_not_depend_on_the_path_of_the_folder(run, folder, there, tmp_path):
    here = folder(index="# Home\n")
    for name in ("x", "y"):
        write_files(here / name, {"post.md": f"# {name}\n"})
    run("push", here)
    other = shutil.copytree(here, tmp_path / "elsewhere", ignore=shutil.ignore_patterns(".blogapi.json"))
    assert run("push", other) == (0, [counts(unchanged=3)])
    assert there().keys() == {"index", "x-post", "y-post"}


def test_single_files_are_sent_from_the_folder_that_contains_them(run, folder, there, change, tmp_path):
    here = folder(a="# A\n", b="# B\n")
    assert "is in no folder that is kept in sync" in run("push", here / "a.md")[1][-1]
    run("push", here)
    for name in "ab":
        edit(here / f"{name}.md", "# ", "# New ")
    assert run("push", here / "a.md")[1] == ["updated a.md", counts(updated=1)]
    change("b", content="Theirs.")
    change("a", content="Theirs.")
    assert run("push", here, here / "b.md", "--overwrite")[1][0] == "updated b.md"
    assert (there()["a"]["content"], there()["b"]["content"]) == ("Theirs.", "# New B\n")
    assert "is not in " in run("push", here, tmp_path / "c.md")[1][-1]


def test_status_says_what_a_push_and_a_pull_would_do(run, synced, change, blog):
    here = synced(a="# A\n", b="# B\n", c="# C\n\nWords.\n")
    edit(here / "a.md", "# A", "# New A")
    edit(here / "c.md", "Words", "My words")
    change("c", content="Their words.")
    blog.request("POST", "/v1/posts", {"title": "There", "content": "x"})
    write_files(here, {"new.md": "# New\n"})
    before = contents(here)
    status, lines = run("status", here)
    assert status == 2
    assert sorted(lines[:-1]) == [
        f"conflict c.md: it has changed on both sides: {WAYS_OUT}",
        "would be created new.md",
        "would be created there.md",
        "would be updated a.md",
    ]
    assert contents(here) == before
    assert CHANGED_HERE.format("a.md") in run("pull", here)[1]


def test_a_difference_shows_what_changed_on_each_side(run, synced, change):
    here = synced(a="# A\n\nOne.\n")
    edit(here / "a.md", "One", "Mine")
    change("a", content="# A\n\nTheirs.\n")
    changed = re.compile(r"^[+-][^+-].*", re.MULTILINE)
    status, lines = run("push", here, "--diff")
    assert (status, changed.findall("\n".join(lines))) == (2, ["-One.", "+Mine.", "-One.", "+Theirs."])
    (here / ".blogapi.json").unlink()
    assert changed.findall("\n".join(run("push", here, "--diff")[1])) == ["-Theirs.", "+Mine."]
    objects = [json.loads(line) for line in run("push", here, "--diff", "--json")[1]]
    assert (objects[1]["file"], {"-Theirs.", "+Mine."} < {*objects[1]["difference"]}) == ("a.md", True)


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


def test_the_results_can_be_objects(run, folder):
    here = folder(a="# A\n")
    assert [json.loads(line) for line in run("push", here, "--json")[1]] == [
        {"action": "created", "file": "a.md", "reason": ""},
        {"counts": {"created": 1, "updated": 0, "unchanged": 0, "conflict": 0, "failed": 0}},
    ]
    assert run("push", here, "--json", "--quiet") == (0, [])


@pytest.mark.slow
def test_a_full_disk_behind_the_output_is_not_blamed_on_the_folder(folder, blog, there):
    here = folder(a="# A\n")
    environ = blog.environ | {"BLOGAPI_KEY": blog.key, "BLOGAPI_REMOTE": f"http://127.0.0.1:{blog.port}"}
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [str(BIN / "blogapi"), "push", str(here)]
        ended = subprocess.run(command, env=environ, stdout=full, stderr=subprocess.PIPE, text=True)
    said = "blogapi: cannot print the results: No space left on device; run the command again\n"
    assert (ended.returncode, ended.stderr) == (1, said)
    assert there().keys() == {"a"}


def test_images_below_the_sites_root_are_sent_and_keep_their_addresses(run, tmp_path, there, change):
    here = tmp_path / "site/content"
    here.parent.mkdir()
    write_files(here, {"a.md": "# A\n\n![a](/img/a.png)\n"})
    static = tmp_path / "site/static"
    (static / "img").mkdir(parents=True)
    (static / "img/a.png").write_bytes(png())
    assert run("push", here, "--static", static) == (0, ["created a.md", counts(created=1)])
    content = there()["a"]["content"]
    assert "/images/" in content
    change("a", content=content.replace("![a]", "![b]"))
    run("pull", here, "--static", static)
    assert (here / "a.md").read_text() == "# A\n\n![b](/img/a.png)\n"


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
    options = here, "--state", here / ".blogapi.sync"
    run("push", *options)
    before = (here / ".blogapi.sync").read_text()
    (here / "a.md").rename(here / "new.md")
    (here / "b.md").unlink()
    run("push", *options, "--delete")
    after = (here / ".blogapi.sync").read_text()
    for merged in (before + after, after + before):
        (here / ".blogapi.sync").write_text(merged)
        assert run("push", *options, "--delete")[0] == 0
        assert there().keys() == {"a", "c"}, merged
    assert run("status", *options) == (0, [f"would be {counts(unchanged=2)}"])


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


def test_a_torn_journal_loses_only_its_last_line(run, synced, there):
    here = synced(a="# A\n", b="# B\n")
    state = here / ".blogapi.json"
    whole = state.read_bytes()
    assert (whole.count(b"\n"), len(whole) < 3 * 700) == (3, True)  # one for the folder, and one for each file
    for data in (whole[:-40], whole + b'["c.md", {"id"', whole + b"\0" * 50):
        state.write_bytes(data)
        assert run("push", here) == (0, [counts(unchanged=2)])
    assert there().keys() == {"a", "b"}


@pytest.mark.parametrize("expiry", ["2020-01-01", "2999-01-01"])
def test_a_post_that_was_published_in_spite_of_what_its_file_says_stays_published(run, synced, there, change, expiry):
    here = synced(a=f"---\nexpiryDate: {expiry}\nlayout: wide\n---\n# A\n")
    assert there()["a"]["status"] == "draft"
    change("a", status="published", excerpt="New")
    assert run("pull", here)[1][0] == "updated a.md"
    assert run("push", here) == (0, [counts(unchanged=1)])
    assert there()["a"]["status"] == "published"
