"""Push and pull: which files they send, under which names, and what the other options do."""

import json
import re

import pytest

from tests.blogs import write_files
from tests.images.pictures import png
from tests.sync.conftest import CHANGED_HERE, WAYS_OUT, contents, counts, edit


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
