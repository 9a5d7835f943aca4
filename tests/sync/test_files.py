"""Push and pull: which files are sent, under which names, which are no posts, and what else the options say."""

import json
import re
from unicodedata import normalize

import pytest

from blogapi.wings.sync.compare import WAYS_OUT
from tests.blogs import write_files
from tests.images.pictures import png
from tests.sync.conftest import CHANGED_HERE, contents, counts, edit


def test_single_files_are_sent_from_the_folder_that_contains_them(run, folder, there, change, tmp_path):
    here = folder(a="# A\n", b="# B\n")
    assert "is not in a synced folder" in run("push", here / "a.md")[1][-1]
    run("push", here)
    for name in "ab":
        edit(here / f"{name}.md", "# ", "# New ")
    assert run("push", here / "a.md")[1] == ["updated a.md", counts(updated=1)]
    change("b", content="Theirs.")
    change("a", content="Theirs.")
    assert run("push", here, here / "b.md", "--overwrite")[1][0] == "updated b.md"
    assert (there()["a"]["content"], there()["b"]["content"]) == ("Theirs.", "# New B\n")
    assert "is not in " in run("push", here, tmp_path / "c.md")[1][-1]
    for command in ("push", "pull"):
        nowhere = run(command, here, here / "c.md", here / "a.md")
        assert (nowhere[0], "failed c.md: no such file to sync" in nowhere[1]) == (1, True)
    (here / "b.md").rename(here / "c.md")
    assert run("push", here, here / "b.md")[0] == 0  # It was synced, and then renamed.


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


def test_the_results_can_be_objects(run, folder):
    here = folder(a="# A\n")
    assert [json.loads(line) for line in run("push", here, "--json")[1]] == [
        {"action": "created", "file": "a.md", "reason": ""},
        {"counts": {"created": 1, "updated": 0, "unchanged": 0, "conflict": 0, "failed": 0}},
    ]
    assert run("push", here, "--json", "--quiet") == (0, [])


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


@pytest.mark.parametrize("expiry", ["2020-01-01", "2999-01-01"])
def test_a_post_that_was_published_in_spite_of_what_its_file_says_stays_published(run, synced, there, change, expiry):
    here = synced(a=f"---\nexpiryDate: {expiry}\nlayout: wide\n---\n# A\n")
    assert there()["a"]["status"] == "draft"
    change("a", status="published", excerpt="New")
    assert run("pull", here)[1][0] == "updated a.md"
    assert run("push", here) == (0, [counts(unchanged=1)])
    assert there()["a"]["status"] == "published"


TEXT = f"---\nauthor: {'Ann ' * 20}\ntitle: A\n---\n\nWords.\n"
IN_CONFLICT = (
    "a (Ann's conflicted copy 2026-11-20)",
    "a (conflicted copy 2026-11-20 101010)",
    "a (In Konflikt stehende Kopie von Ann 2026-11-20)",
    "a (Copie en conflit de Ann 2026-11-20)",
    "a (Copia en conflicto de Ann 2026-11-20)",
    "a (Copia in conflitto di Ann 2026-11-20)",
    "a (Anns modstridende kopi 2026-11-20)",
    "a (Ann の競合コピー 2026-11-20)",
    "a (Ann 的冲突副本 2026-11-20)",
    "a (конфликтующая копия Ann 2026-11-20)",
    "a (conflict on 2026-11-20)",
    "a.conflict1",
    "a.sync-conflict-20261120-101010-ABCDEFG",
    "a_BASE_1234",
    "a_REMOTE_1234",
    "a_conflict-20261120-101010",
    "notes (conflict of 1914)",
)
COPIED = ("a (1)", "a copy", "a - Copy", "a 2", "a-DESKTOP-AB12CD3")


def kinds(lines):
    """What a command says that it left out, without the names."""
    return {line.partition(" (")[0] for line in lines if line.startswith("Left out: ")}


def test_copies_are_left_out_in_many_languages(run, folder, there):
    others = {"Part (1)": "# There is no Part.md\n", "a 3": "# Part 3\n", "a 4": TEXT.replace("title: A", "title: 4")}
    here = folder(a=TEXT, **others)
    write_files(here, {f"{name}.md": f"{TEXT}More.\n" for name in IN_CONFLICT + COPIED})
    assert kinds(run("push", here)[1]) == {
        f"Left out: {len(IN_CONFLICT)} duplicates made in a conflict",
        f"Left out: {len(COPIED)} duplicates of another file",
    }
    assert there().keys() == {"a", "part-1", "a-3", "a-4"}


def test_a_synced_file_is_never_left_out_as_a_copy(run, synced, folder):
    here = synced(**{"b copy": "# Another\n"})
    folder(b="# B\n", **{"b copy": "# Another, edited\n"})
    assert run("push", here)[1][-1] == counts(created=1, updated=1)


def test_ignored_files_are_left_out(run, folder, there, change):
    here = folder(hello="# Hello\n", kept="# Kept\n", secret="# Secret\n")
    write_files(here / "private", {"note.md": "# Note\n", ".gitignore": "!note.md\n"})  # git would ignore it, too
    (here / ".gitignore").write_text("private/\n/kept.md\n")
    (here / ".blogapiignore").write_text("!kept.md\nsecret.*\n")
    assert "Left out: 2 files excluded by an ignore file" in kinds(run("push", here)[1])
    assert there().keys() == {"hello", "kept"}
    run("push", here, "--no-gitignore")
    assert there().keys() == {"hello", "kept", "note"}
    change("note", title="Changed")
    before = contents(here)
    assert (run("pull", here)[0], contents(here)) == (0, before)
    run("push", here, "--delete")
    assert "note" in there()


def test_ignore_files_are_read_as_git_reads_them(run, folder, there):
    name = "Crème"
    here = folder(a="# A\n", secret="# Secret\n", **{normalize("NFD", name): "# Cream\n"})
    (here / ".gitignore").write_bytes(f"\ufeffsecret.md\r\n{normalize('NFC', name)}.md\r\n".encode())
    run("push", here)
    assert there().keys() == {"a"}


def test_an_ignore_file_that_cannot_be_read_stops_the_push(run, folder, there):
    here = folder(a="# A\n")
    for data in (b"\xff", b"a\n" * 40_000):
        (here / ".blogapiignore").write_bytes(data)
        status, lines = run("push", here)
        assert (status, lines[-1].startswith(".blogapiignore cannot be used: ")) == (1, True)
    assert there() == {}


def test_another_checkout_is_left_out_and_a_submodule_is_not(run, folder, there):
    here = folder(a="# A\n")
    for name, git in {"tree": "gitdir: /x/.git/worktrees/tree", "module": "gitdir: ../.git/modules/module"}.items():
        write_files(here / name, {f"{name}.md": f"# {name}\n", ".git": git})
    (here / "clone/.git").mkdir(parents=True)
    write_files(here / "clone/sub", {"clone.md": "# Clone\n"})
    (here / "themes/t").mkdir(parents=True)
    write_files(here / "themes/t/exampleSite", {"example.md": "# Example\n"})
    _, lines = run("push", here)
    assert there().keys() == {"a", "module"}
    assert kinds(lines) >= {"Left out: 2 files in another checkout", "Left out: 1 file from a theme's example site"}


def test_a_folder_above_a_synced_one_skips_it_and_none_below_it_can_be_synced(run, synced, there):
    here = synced(a="# A\n")
    left_out = f"Left out: 1 file in another synced folder ({here}/a.md)."
    assert run("push", here.parent)[1][-2:] == [left_out, counts()]
    (here.parent / ".blogapi.json").unlink()
    write_files(here / "sub", {"b.md": "# B\n"})
    refused = f"{here}/sub is part of {here}, which is already synced: pass {here} instead"
    assert (run("push", here / "sub"), there().keys()) == ((1, [refused]), {"a"})


@pytest.mark.parametrize("version", ["a.md..path1", "a.md.conflict2", "a.conflict1.md"])
def test_a_file_whose_versions_rclone_set_aside_is_not_gone(run, synced, there, version):
    here = synced(a="# A\n", b="# B\n", c="# C\n")
    (here / "a.md").rename(here / version)
    for command in ("push", "pull"):
        status, lines = run(command, here, "--delete")
        assert (status, lines[0].partition(": ")[0]) == (2, "conflict a.md"), command
    (here / version).rename(here / "a.md")
    assert run("push", here) == (0, [counts(unchanged=3)])
    assert there().keys() == {"a", "b", "c"}


def test_links_out_of_the_folder_are_left_alone(run, folder, tmp_path, there, change):
    (tmp_path / "secret.md").write_text("# Secret\n")
    (tmp_path / "outside").mkdir()
    here = folder(a="# A\n\n![x](../secret.png)\n")
    (tmp_path / "secret.png").write_bytes(png())
    (here / "link.md").symlink_to(tmp_path / "secret.md")
    (here / "sub").symlink_to(tmp_path / "outside")
    run("push", here)
    assert there().keys() == {"a"}
    assert "../secret.png" in there()["a"]["content"]
    state = (here / ".blogapi.json").read_text()
    (here / ".blogapi.json").write_text(state.replace('"a.md"', '"sub/a.md"'))
    change("a", title="B")
    run("pull", here, "--theirs")
    assert list((tmp_path / "outside").iterdir()) == []
    for name in ("../a.md", ".git/a.md", "/a.md", "a.sh"):
        (here / ".blogapi.json").write_text(state.replace('"a.md"', f'"{name}"'))
        assert run("pull", here)[1][0].startswith(f"{here}/.blogapi.json is damaged")
