"""Push and pull: which post a file is, whatever happens to files, slugs and the state."""

import json
import os
import shutil
import subprocess
from unicodedata import normalize

import pytest

from blogapi.wings.sync import state as states
from tests.blogs import write_files
from tests.cases import cases
from tests.images.pictures import png
from tests.sync.conftest import CHANGED_THERE, WAYS_OUT, contents, counts, edit, next_second, read_state, write_state

DIFFERS = f"the post {{0}} differs from the file: {WAYS_OUT}"


def texts(posts):
    return {slug: post["content"] for slug, post in posts.items()}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Go on as on another machine, which has another state folder."""
    return lambda name: monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f".own-{name}"))


# Bytes before names


@pytest.mark.parametrize(
    "names",
    [
        {"c1": "c2", "c2": "c3", "c3": "c4"},
        {"c1": "c2", "c2": "c1", "c3": "c3"},
        {"c1": "c2", "c2": "c3", "c3": "c1"},
        {"c1": "sub/c2", "c2": "c1", "c3": "c2"},
    ],
)
def test_files_that_take_each_others_names_stay_the_files_of_their_posts(run, folder, there, names):
    here = folder(**{name: f"---\nstatus: published\n---\nText {name}.\n" for name in names})
    run("push", here)
    before = texts(there())
    for name in names:
        (here / f"{name}.md").rename(here / f".{name}")
    (here / "sub").mkdir(exist_ok=True)
    for name, new in names.items():
        (here / f".{name}").rename(here / f"{new}.md")
    status, lines = run("push", here, "--delete")
    renamed = sum(old != new for old, new in names.items())
    assert (status, lines[-1]) == (0, counts(unchanged=3, renamed=renamed))
    assert texts(there()) == before
    assert run("pull", here) == (0, [counts(unchanged=3)])


def test_a_file_that_replaces_another_is_itself_and_the_other_is_gone(run, synced, there):
    here = synced(a="# A\n", b="# B\n", c="# C\n")
    (here / "a.md").rename(here / "b.md")
    _, lines = run("push", here)
    assert lines[0] == "renamed b.md: was a.md"
    assert lines[1].startswith("gone here a.md: ")
    run("push", here, "--delete")
    assert texts(there()) == {"a": "# A\n", "c": "# C\n"}


def test_a_copy_is_a_new_file_even_if_the_first_one_is_edited(run, synced, there):
    here = synced(a="# A\n")
    shutil.copy(here / "a.md", here / "b.md")
    edit(here / "a.md", "# A", "# A, edited")
    assert run("push", here)[1][:-1] == ["updated a.md", "created b.md"]
    assert texts(there()) == {"a": "# A, edited\n", "b": "# A\n"}


def test_other_line_ends_are_recorded_so_that_the_file_can_be_renamed(run, synced, there):
    here = synced(a="---\ntitle: A\nstatus: published\n---\ntext\n")
    (here / "a.md").write_bytes((here / "a.md").read_bytes().replace(b"\n", b"\r\n"))
    assert run("push", here) == (0, [counts(unchanged=1)])
    (here / "a.md").rename(here / "b.md")
    assert run("push", here, "--delete")[1] == ["renamed b.md: was a.md", counts(unchanged=1, renamed=1)]
    assert there().keys() == {"a"}


# Slugs that were made


def test_a_slug_that_was_made_stays_whatever_files_come_and_go(run, folder, there, tmp_path):
    here = folder()
    for year in ("2023", "2024", "2022"):  # The next one has the same slug, and gets its folder in front.
        write_files(here / year, {"hello.md": f"# {year}\n"})
        assert run("push", here)[0] == 0
    slugs = {post["title"]: slug for slug, post in there().items()}
    assert slugs == {"2023": "hello", "2024": "2024-hello", "2022": "2022-hello"}
    shutil.copytree(here, tmp_path / "clone", ignore=shutil.ignore_patterns(".blogapi.json"))
    assert run("push", tmp_path / "clone") == (0, [counts(unchanged=3)])
    (here / "2023/hello.md").unlink()
    edit(here / "2024/hello.md", "# 2024", "# 2024, edited")
    _, lines = run("push", here, "--delete")
    assert sorted(lines[:-1]) == ["deleted 2023/hello.md", "updated 2024/hello.md"]
    assert {post["title"]: slug for slug, post in there().items()} == {
        "2024, edited": "2024-hello",
        "2022": "2022-hello",
    }


def test_a_slug_that_was_taken_is_no_change_of_the_slug(run, folder, there):
    here, text = folder(), "---\ntitle: {0}\nslug: intro\n---\n{0}\n"
    write_files(here, {f"{year}/intro.md": text.format(year) for year in ("2023", "2024")})
    run("push", here)
    assert run("push", here) == (0, [counts(unchanged=2)])
    for year in ("2023", "2024"):
        edit(here / year / "intro.md", f"---\n{year}", f"---\nEdited {year}")
    assert run("push", here)[1][-1] == counts(updated=2)
    assert sorted(texts(there()).values()) == ["Edited 2023\n", "Edited 2024\n"]
    edit(here / "2024/intro.md", "slug: intro", "slug: other")  # This is one.
    run("push", here)
    assert there()["other"]["content"] == "Edited 2024\n"


def test_a_new_file_with_the_slug_of_a_synced_one_is_refused_and_not_the_other(run, folder, there):
    here = folder(z="---\nslug: x\n---\n# Z\n")
    run("push", here)
    folder(a="---\nslug: x\n---\n# A\n")
    edit(here / "z.md", "# Z", "# Z, edited")
    failed = "failed a.md:2: z.md has the slug x, too: one of them needs a `slug` of its own"
    for lines in ([failed, "updated z.md", counts(updated=1, failed=1)], [failed, counts(unchanged=1, failed=1)]):
        assert run("push", here) == (1, lines)
    assert texts(there()) == {"x": "# Z, edited\n"}


def test_without_a_state_a_file_that_could_be_several_posts_is_refused_and_nothing_is_created(run, folder, there):
    here = folder(hello="# First\n")
    run("push", here)
    (here / ".blogapi.json").unlink()
    (here / "hello.md").unlink()
    write_files(here, {f"{year}/hello.md": f"# {year}\n" for year in ("2023", "2024")})
    status, lines = run("push", here)
    assert status == 2
    assert (
        lines[0] == "failed 2024/hello.md: 2023/hello.md has the slug hello, too: one of them needs a `slug` of its own"
    )
    assert lines[1] == f"conflict 2023/hello.md: {DIFFERS.format('hello')}"
    assert texts(there()) == {"hello": "# First\n"}


# Where a state is true


def test_a_state_that_arrives_before_its_file_overwrites_nothing(run, synced, machine, there, tmp_path):
    machine("a")
    here = synced(a="# A\n\nOld.\n", b="# B\n")
    other = shutil.copytree(here, tmp_path / "other")
    machine("b")
    run("push", other)
    machine("a")
    edit(here / "a.md", "Old.", "An hour of work.")
    next_second()
    run("push", here)
    machine("b")
    shutil.copy(here / ".blogapi.json", other)
    assert run("push", other) == (0, [CHANGED_THERE.format("a.md"), counts(changed_there=1, unchanged=1)])
    assert there()["a"]["content"] == "# A\n\nAn hour of work.\n"
    assert run("pull", other)[1][0] == "updated a.md"


def test_an_edit_is_sent_if_a_state_from_elsewhere_agrees_with_the_own_one(run, synced, machine, there, tmp_path):
    machine("a")
    here = synced(a="# A\n", b="# B\n")
    other = shutil.copytree(here, tmp_path / "other")
    machine("b")
    run("push", other)
    edit(other / "a.md", "# A", "# A, edited")
    machine("a")
    edit(here / "b.md", "# B", "# B, edited")
    run("push", here)
    machine("b")
    for name in (".blogapi.json", "b.md"):
        shutil.copy(here / name, other)
    assert run("push", other) == (0, ["updated a.md", counts(updated=1, unchanged=1)])
    (other / "a.md").unlink()
    assert run("push", other, "--delete")[1][0] == "deleted a.md"
    assert there().keys() == {"b"}


def test_a_copy_of_the_folder_on_the_same_machine_has_no_state_of_its_own(run, synced, there, tmp_path):
    here = synced(a="# A\n", b="# B\n")
    other = shutil.copytree(here, tmp_path / "other")
    edit(here / "a.md", "# A", "# A, newer")
    run("push", here)
    edit(other / "a.md", "# A", "# A, edited in the copy")
    assert run("push", other) == (2, [f"conflict a.md: {DIFFERS.format('a')}", counts(unchanged=1, conflict=1)])
    assert there()["a"]["content"] == "# A, newer\n"
    assert len([*(tmp_path / ".own/blogapi").glob("*.json")]) == 2


@pytest.mark.parametrize("kept", [True, False])
def test_a_moved_folder_keeps_its_state_even_without_a_state_folder(run, synced, monkeypatch, tmp_path, there, kept):
    if not kept:
        (tmp_path / "no folder").write_text("")
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "no folder"))
    here = synced(a="# A\n", b="# B\n")
    moved = here.rename(tmp_path / "moved")
    edit(moved / "a.md", "# A", "# A, edited")
    assert run("push", moved) == (0, ["updated a.md", counts(updated=1, unchanged=1)])


def test_a_disk_that_numbers_its_files_anew_changes_nothing(run, synced):
    here = synced(a="# A\n", b="# B\n")
    status = (here / ".blogapi.json").stat()
    shutil.copy2(here / ".blogapi.json", here / "again")
    (here / "again").replace(here / ".blogapi.json")
    assert (here / ".blogapi.json").stat().st_ino != status.st_ino
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


def test_only_the_newest_copies_of_states_are_kept(run, synced, monkeypatch, own_states):
    monkeypatch.setattr(states, "MAX_COPIES", 2)
    own_states.mkdir(mode=0o700, parents=True)
    for number in range(4):
        (own_states / f"{number}.json").write_text("")
        os.utime(own_states / f"{number}.json", (number, number))
    synced(a="# A\n")
    assert {path.name for path in own_states.iterdir()} > {"3.json"}
    assert len([*own_states.iterdir()]) == 2


def test_copies_of_states_are_only_for_their_user(run, synced, own_states):
    synced(a="# A\n")
    assert own_states.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("place", ["here", "elsewhere"])
def test_a_state_of_version_1_3_is_read(run, synced, own_states, place):
    here = synced(a="# A\n", b="# B\n")
    shutil.rmtree(own_states)
    head, entries = read_state(here)
    del head["id"]
    write_state(here, head, entries)
    numbers = f"{here.stat().st_ino}-{(here / '.blogapi.json').stat().st_ino}"
    head["places"] = [numbers if place == "here" else "1-2", "host:/somewhere"]
    write_state(here, head, entries)
    edit(here / "a.md", "# A", "# A, edited")
    said = ["updated a.md", counts(updated=1, unchanged=1)]
    if place == "elsewhere":
        said = [f"conflict a.md: {DIFFERS.format('a')}", counts(unchanged=1, conflict=1)]
    assert run("push", here)[1] == said


def test_after_git_merged_two_states_the_newest_entry_counts(run, synced, change, there):
    here = synced(a="# A\n")
    options, own = (here, "--state", here / ".blogapi.sync"), here / ".blogapi.sync"
    run("push", *options)
    old = own.read_text()
    next_second()
    edit(here / "a.md", "# A", "# A, newer")
    run("push", *options)
    new = own.read_text()
    for merged in (old + new, new + old):
        own.write_text(merged)
        assert run("push", *options) == (0, [counts(unchanged=1)]), merged


def test_a_text_that_git_reverted_together_with_the_state_is_a_conflict(run, synced, there, tmp_path, machine):
    machine("a")
    here = synced(a="# A\n")
    options, own = (here, "--state", here / ".blogapi.sync"), here / ".blogapi.sync"
    run("push", *options)
    text, old = (here / "a.md").read_bytes(), own.read_bytes()
    next_second()
    edit(here / "a.md", "# A", "# A, newer")
    run("push", *options)
    (here / "a.md").write_bytes(text)
    own.write_bytes(old)
    conflict = [f"conflict a.md: {DIFFERS.format('a')}", counts(conflict=1)]
    assert [run(command, *options) for command in ("push", "pull")] == [(2, conflict)] * 2
    machine("b")
    assert run("push", *options)[1][0] == CHANGED_THERE.format("a.md")
    machine("a")
    assert run("push", *options, "--overwrite")[1][0] == "updated a.md"
    assert there()["a"]["content"] == "# A\n"


# What is no article

CONFLICTS = (
    "a (In Konflikt stehende Kopie von Ann 2026-11-20).md",
    "a (Copie en conflit de Ann 2026-11-20).md",
    "a (Copia en conflicto de Ann 2026-11-20).md",
    "a (Copia in conflitto di Ann 2026-11-20).md",
    "a (Anns modstridende kopi 2026-11-20).md",
    "a (Ann の競合コピー 2026-11-20).md",
    "a (Ann 的冲突副本 2026-11-20).md",
    "a (конфликтующая копия Ann 2026-11-20).md",
    "a (conflict on 2026-11-20).md",
    "a.conflict1.md",
    "a_BASE_1234.md",
    "a_REMOTE_1234.md",
    "a_conflict-20261120-101010.md",
)


def test_copies_of_conflicts_are_left_out_in_many_languages_but_synced_files_never(run, synced, there):
    here = synced(**{"b": "# B\n", "b copy": "# Another\n", "notes (conflict of 1914)": "# History\n"})
    assert there().keys() == {"b", "notes-conflict-of-1914"} - {"notes-conflict-of-1914"}
    (here / "b.md").unlink()
    run("push", here)
    write_files(here, {"b.md": "# B\n"} | dict.fromkeys(CONFLICTS, "# A\n"))
    edit(here / "b copy.md", "# Another", "# Another, edited")
    _, lines = run("push", here)
    assert lines[0].startswith("updated b copy.md")
    assert next(line for line in lines if " from a conflict" in line).startswith(f"Left out: {len(CONFLICTS) + 1} ")
    assert there().keys() == {"b", "b-copy"}


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
    assert {line.partition(" (")[0] for line in lines if line.startswith("Left out: ")} >= {
        "Left out: 2 files of another checkout",
        "Left out: 1 example of a theme",
    }


def test_ignore_files_are_read_as_git_reads_them(run, folder, there):
    name = "Crème"
    here = folder(a="# A\n", secret="# Secret\n", **{normalize("NFD", name): "# Cream\n"})
    (here / ".gitignore").write_bytes(f"\ufeffsecret.md\r\n{normalize('NFC', name)}.md\r\n".encode())
    run("push", here)
    assert there().keys() == {"a"}


MARKS = "<<<<<<< HEAD\nmine\n=======\ntheirs\n>>>>>>> other\n"


@cases(
    ("text", "line"),
    [
        ("# A\n\nlong and valuable" + "\0" * 50, 0),
        (f"# A\n\n{MARKS}", 3),
        (f"---\ntitle: A\n{MARKS}---\n\nText.\n", 3),
        (f"# A\n\n{MARKS}".replace("mine", "Mine\n======="), 3),
        (f"# A\n\n{MARKS}".replace("\n", "\r\n"), 3),
    ],
)
def test_a_torn_file_is_refused(run, synced, there, text, line):
    here = synced(a="# A\n\nlong and valuable\n")
    (here / "a.md").write_bytes(text.encode())
    status, lines = run("push", here)
    assert (status, lines[0].partition(": ")[0]) == (1, f"failed a.md:{line}" if line else "failed a.md")
    assert run("push", here)[0] == 0  # Its text could not be read last time either.
    assert there()["a"]["content"] == "# A\n\nlong and valuable\n"


def test_marks_that_are_no_whole_conflict_are_text_and_so_are_those_that_a_pull_wrote(run, synced, there, change):
    here = synced(a="# A\n\nHeading\n=======\n\n>>>>>>> quoted\n\n    <<<<<<< HEAD\n")
    assert run("push", here) == (0, [counts(unchanged=1)])
    change("a", content=MARKS)
    assert run("pull", here)[1][0] == "updated a.md"
    assert run("push", here) == (0, [counts(unchanged=1)])


# What cannot be written, and what has moved


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


def test_what_cannot_be_written_fails_each_time_until_it_works(run, synced, change):
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


def test_a_pull_writes_the_new_addresses_of_images_and_a_push_sends_no_old_ones(run, folder, there, blog, change):
    _, _, image = blog.request("POST", "/v1/images", png(), Content_Type="image/png")
    old = f"https://old.example/images/{image['url'].rpartition('/')[2]}"
    here = folder(**{name: f"# {name}\n\n![x]({old})\n\nText {name}.\n" for name in "ab"})
    run("push", here)
    new = image["url"]
    next_second()
    for name in "ab":
        change(name, content=there()[name]["content"].replace(old, new))  # as `images --rebase` does
    assert run("push", here)[1][:-1] == [CHANGED_THERE.format(f"{name}.md") for name in "ab"]
    edit(here / "b.md", "Text b", "Text b, edited")
    assert "updated b.md" in run("push", here)[1]
    assert new in there()["b"]["content"]
    assert "edited" in there()["b"]["content"]
    assert sorted(run("pull", here)[1][:-1]) == ["updated a.md", "updated b.md"]
    assert all(new.encode() in data and old.encode() not in data for data in contents(here).values())
    for command in ("push", "pull"):
        assert run(command, here) == (0, [counts(unchanged=2)])


def test_status_asks_for_the_history_of_a_post_once(run, synced, change, blog):
    here = synced(a="# A\n")
    head, entries = read_state(here)
    next_second()
    change("a", content="Theirs.")
    write_state(here, head, {"a.md": entries["a.md"] | {"updated_at": "2020-01-01T00:00:00Z"}})
    before = blog.log.count("/revisions?")
    run("status", here)
    blog.request("GET", "/healthz?last")
    assert blog.log.count("/revisions?") - before <= 1
    assert json.loads((here / ".blogapi.json").read_text().splitlines()[0])["remote"]


@pytest.mark.parametrize("end", ["..path1", ".conflict2"])
def test_a_file_whose_versions_rclone_set_aside_is_not_gone(run, synced, there, end):
    here = synced(a="# A\n", b="# B\n", c="# C\n")
    (here / "a.md").rename(here / f"a.md{end}")
    for command in ("push", "pull"):
        status, lines = run(command, here, "--delete")
        assert (status, lines[0].partition(": ")[0]) == (2, "conflict a.md"), command
    (here / f"a.md{end}").rename(here / "a.md")
    assert run("push", here) == (0, [counts(unchanged=3)])
    assert there().keys() == {"a", "b", "c"}


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
    assert run("push", *options)[0] == 1
    assert there()["a"]["content"] == "# A\n\nOne.\n"
    git("checkout", "--theirs", "a.md")
    assert run("push", *options)[0] == 0
    assert there()["a"]["content"] == "# A\n\nTwo.\n"
