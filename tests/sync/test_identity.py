"""Push and pull: which post a file belongs to, even if its name or its slug changes."""

import shutil

import pytest

from tests.blogs import write_files
from tests.images.pictures import png
from tests.sync.conftest import CHANGED_THERE, contents, counts, edit, next_second, read_state, record, texts


@pytest.mark.parametrize(
    "names",
    [
        {"c1": "c2", "c2": "c3", "c3": "c4"},
        {"c1": "c2", "c2": "c1", "c3": "c3"},
        {"c1": "c2", "c2": "c3", "c3": "c1"},
        {"c1": "sub/c2", "c2": "c1", "c3": "c2"},
        {"c1": "c2", "c2": "c3", "c3": "c4", "c4": "twin", "twin": "c1"},
    ],
)
def test_files_that_swap_their_names_keep_their_posts(run, folder, there, names):
    here = folder(**{name: f"---\nstatus: published\n---\nText {name}.\n" for name in names})
    if "twin" in names:
        shutil.copy(here / "c2.md", here / "twin.md")
    run("push", here)
    before = texts(there())
    for name in names:
        (here / f"{name}.md").rename(here / f".{name}")
    (here / "sub").mkdir(exist_ok=True)
    for name, new in names.items():
        (here / f".{name}").rename(here / f"{new}.md")
    status, lines = run("push", here, "--delete")
    renamed = sum(old != new for old, new in names.items())
    assert (status, lines[-1]) == (0, counts(unchanged=len(names), renamed=renamed))
    assert texts(there()) == before
    assert run("pull", here) == (0, [counts(unchanged=len(names))])


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


@pytest.mark.parametrize("name", ["a", "c", "d"])  # Its post has changed, is gone, is unchanged.
def test_changed_line_endings_are_recorded_so_that_the_file_can_be_renamed(run, synced, there, blog, change, name):
    here = synced(a="# A\n", b="# B\n", c="# C\n", d="# D\n")
    next_second()
    change("a", content="Theirs.")
    blog.request("DELETE", "/v1/posts/by-slug/c")
    (here / f"{name}.md").write_bytes((here / f"{name}.md").read_bytes().replace(b"\n", b"\r\n"))
    run("push", here)
    for old, new in ((f"{name}.md", "old.md"), ("b.md", f"{name}.md"), ("old.md", "b.md")):
        (here / old).rename(here / new)
    assert {f"renamed b.md: was {name}.md", f"renamed {name}.md: was b.md"} < {*run("push", here)[1]}
    assert texts(there()) == {"a": "Theirs.", "b": "# B\n", "d": "# D\n"}


def test_a_file_edited_to_match_its_changed_post_can_be_renamed(run, synced, there, change):
    here = synced(a="# A\n")
    next_second()
    edit(here / "a.md", "# A\n", "# A\n\nNew.\n")
    change("a", content="# A\n\nNew.\n", slug="other")
    assert run("push", here)[1][0] == CHANGED_THERE.format("a.md")  # It lacks the slug.
    (here / "a.md").rename(here / "b.md")
    assert run("push", here, "--delete")[1][:-1] == ["renamed b.md: was a.md", CHANGED_THERE.format("b.md")]
    assert there().keys() == {"other"}


def test_a_pull_writes_the_new_addresses_of_images_and_a_push_sends_no_old_ones(run, synced, there, blog, change):
    _, _, image = blog.request("POST", "/v1/images", png(), Content_Type="image/png")
    old = f"https://old.example/images/{image['url'].rpartition('/')[2]}"
    here = synced(**{name: f"# {name}\n\n![x]({old})\n\nText {name}.\n" for name in "ab"})
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
    next_second()
    change("a", content="Theirs.")
    record(here, updated_at="2020-01-01T00:00:00Z")
    before = blog.log.count("/revisions?")
    run("status", here)
    blog.request("GET", "/healthz?last")
    assert blog.log.count("/revisions?") - before <= 1
    assert read_state(here)[0]["remote"]


def test_a_copy_of_the_folder_without_its_state_creates_no_post_twice(run, folder, change, there, tmp_path):
    here = folder(a="# A\n", b="---\nslug: b\n---\n# B\n", index="# Home\n")
    write_files(here, {"2024-01-01/b.md": "# Another B\n", "x/post.md": "# X\n", "y/post.md": "# Y\n"})
    run("push", here)
    (other,) = there().keys() - {"a", "b", "index", "x-post", "y-post"}  # They do not depend on the path of the folder.
    for slug in (other, "a"):
        change(slug, excerpt="New", slug=f"{slug}-new")
    run("pull", here)
    shutil.copytree(here, tmp_path / "copy", ignore=shutil.ignore_patterns(".blogapi.json"))
    assert run("push", tmp_path / "copy") == (0, [counts(unchanged=6)])
    assert there().keys() == {"a-new", "b", "index", "x-post", "y-post", f"{other}-new"}


def test_a_file_renamed_together_with_its_slug_keeps_its_post(run, synced, folder, there):
    here = synced(tea="---\nslug: tea\nstatus: published\n---\nTea.\n")
    post_id, created_at = there()["tea"]["id"], there()["tea"]["created_at"]
    (here / "tea.md").unlink()
    folder(green=f'---\nid: "{post_id}"\ncreated_at: {created_at}\nslug: green-tea\nstatus: published\n---\nTea.\n')
    assert run("push", here)[1] == ["renamed green.md: was tea.md", "updated green.md", counts(updated=1, renamed=1)]
    assert (there()["green-tea"]["id"], there()["green-tea"]["former_slugs"]) == (post_id, ["tea"])


def test_an_id_in_a_file_does_not_match_a_post_of_another_database(run, synced, folder, there, tmp_path):
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
    why = "conflict {}: {} is gone, and {} has its slug: if they are the same file, add `slug: a`; if not, another slug"
    conflicts = [why.format("new/a.md", "a.md", "this file"), why.format("a.md", "this file", "new/a.md")]
    for command in (("push", "--dry-run"), ("push",), ("pull",), ("push", "--delete"), ("pull", "--theirs")):
        status, lines = run(*command, here)
        assert (status, {*lines} - {*conflicts}) == (2, {*lines[-1:]}), command
    write_files(here, {"new/a.md": "---\nslug: a\n---\n# A, new\n"})
    assert run("push", here, "--delete")[1][:2] == ["renamed new/a.md: was a.md", "updated new/a.md"]
    assert (there()["a"]["content"], there()["a"]["status"]) == ("# A, new\n", "published")


def test_a_post_that_is_created_again_replaces_no_other_post_with_its_slug(run, synced, blog, there):
    here = synced(a="# A\n", b="# B\n")
    blog.request("DELETE", "/v1/posts/by-slug/a?permanent=true")
    blog.request("PUT", "/v1/posts/by-slug/a", {"title": "Stranger", "content": "Stranger"})
    for options in (["--recreate"], ["--recreate", "--overwrite"]):
        status, lines = run("push", here, *options)
        assert (status, lines[0]) == (2, "conflict a.md: its post is gone, and another post has the slug a")
    assert there()["a"]["content"] == "Stranger"
