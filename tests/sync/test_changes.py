"""Push and pull: keeping a folder and a service on a real socket in sync."""

import re
import shutil

import pytest

from blogapi.documents import EXAMPLE, OPTIONAL, SHORT_TEXTS
from blogapi.markdown.files import parse
from blogapi.wings.sync.compare import WAYS_OUT
from tests.blogs import SAMPLES, write_files
from tests.cases import cases
from tests.sync.conftest import CHANGED_THERE, GONE_THERE, contents, counts, edit, next_second, read_state, record

HELLO = (
    "---\n# mine\ntitle: Hello   # a greeting\ntags: [a, 'b c']\ndate: 2026-01-02\nlayout: wide\n---\n\nOne.\n\nTwo.\n"
)


# Changes on one side reach the other


def test_a_push_and_a_pull_into_another_folder_give_the_same_files(run, folder, tmp_path, there):
    here = folder(hello=HELLO, draft="# A draft\n\nNot yet.\r\nNever.", broken="---\n: x\n---\n", nested="Words")
    write_files(here / "2025", {"2025-03-04-old.MD": "Old words.\n"})
    status, lines = run("push", here, "--publish")
    assert (status, lines[-1]) == (1, counts(created=4, failed=1))
    assert lines[0].startswith("failed broken.md:2: ")
    posts = there()
    statuses = {"hello": "published", "draft": "draft", "nested": "draft", "old": "published"}
    assert {slug: post["status"] for slug, post in posts.items()} == statuses
    assert (posts["hello"]["params"], posts["old"]["published_at"]) == ({"layout": "wide"}, "2025-03-04T00:00:00Z")
    assert posts["draft"]["content"] == "# A draft\n\nNot yet.\r\nNever."
    (here / "broken.md").unlink()
    before = contents(here)
    for command in ("push", "pull"):
        assert run(command, here) == (0, [counts(unchanged=4)])
    assert contents(here) == before
    other = tmp_path / "other"
    assert (run("pull", other)[1][-1], run("push", other)) == (counts(created=4), (0, [counts(unchanged=4)]))
    assert there() == posts
    (other / ".blogapi.json").unlink()  # Without it, everything is compared.
    for command in ("push", "pull"):
        assert run(command, other) == (0, [counts(unchanged=4)])


def test_a_pull_edits_only_the_lines_that_differ(run, folder, change):
    text = HELLO.replace("\n", "\r\n")
    here = folder(hello=text)
    run("push", here, "--publish")
    change("hello", content="One.\n\nThree.\nTwo.\n", title="Hello: you", params={"layout": "slim", "size": 1}, tags=[])
    assert run("pull", here) == (0, ["updated hello.md", counts(updated=1)])
    after = text.replace("Hello ", '"Hello: you" ').replace("wide", "slim\r\nsize: 1")
    after = after.replace("tags: [a, 'b c']\r\n", "").replace("One.\r\n\r\n", "One.\r\n\r\nThree.\r\n")
    assert (here / "hello.md").read_bytes().decode() == after
    assert run("push", here) == (0, [counts(unchanged=1)])
    change("hello", status="draft", slug="other")
    run("pull", here)
    new = after.replace("size: 1\r\n", "size: 1\r\nstatus: draft\r\nslug: other\r\n")
    assert (here / "hello.md").read_bytes().decode() == new


def test_tags_under_several_names_are_merged_under_one_and_the_mode_of_the_file_stays(run, synced, change):
    here = synced(a="---\ntitle: 'A'\ncategories:\n  - b\ntags:   # ours\n  - c\nlayout: wide\n---\nWords.\n")
    (here / "a.md").chmod(0o755)
    change("a", tags=["c", "d"])
    run("pull", here)
    assert (here / "a.md").read_text() == "---\ntitle: 'A'\ntags:   # ours\n  - c\n  - d\nlayout: wide\n---\nWords.\n"
    assert (here / "a.md").stat().st_mode & 0o777 == 0o755


def test_a_flag_for_drafts_and_the_mapping_params_are_edited_where_they_are(run, synced, change):
    text = "---\ntitle: A\ndraft: true\n# ours\nparams:\n  a: 1\n\nlayout: x\n---\nWords.\n"
    here = synced(a=text)
    post = change("a", status="published", params={"a": 2})
    run("pull", here)
    after = text.replace("true", "false").replace("a: 1", "a: 2")
    after = after.replace("layout: x\n", f"layout: x\npublished_at: {post['published_at']}\n")
    assert (here / "a.md").read_text() == after
    change("a", status="archived")
    run("pull", here)
    new = after.replace("draft: false\n", "").replace("Z\n---", "Z\nstatus: archived\n---")
    assert (here / "a.md").read_text() == new
    assert run("push", here) == (0, [counts(unchanged=1)])


def test_comments_in_front_matter_stay(run, synced, change):
    params = "params: # p\n  # who\n  author: Ann  # main\n  # deep\n  site:\n    # inner\n    a: 1  # one\n    b: 2\n"
    tags = "tags: # t\n# above a\n- a # of a\n# above b\n- b # of b\n"
    text = f"---\ntitle: \"A # b\" # its name\nslug: a #short\n{tags}{params}x: [1, '# 2'] # x\n---\nText.\n"
    here = synced(a=text)
    params = {"site": {"a": 5}, "author": "Bob", "x": "y # z"}
    change("a", title="C", slug="c", status="archived", tags=["b", "c"], params=params)
    run("pull", here)
    after = text.replace("Ann", "Bob").replace("a: 1", "a: 5").replace('"A # b"', "C").replace("slug: a", "slug: c")
    after = after.replace("# above a\n- a # of a\n", "").replace("# of b\n", "# of b\n- c\n")
    after = after.replace("[1, '# 2']", '"y # z"').replace("\n---\nT", "\nstatus: archived\n---\nT")
    assert (here / "a.md").read_text() == after
    assert run("push", here) == (0, [counts(unchanged=1)])


def test_a_file_whose_lines_cannot_be_edited_is_rewritten(run, synced, change):
    here = synced(
        a="+++\ntitle = 'A'\nweight = 2\n+++\nWords.\n",
        b="# A\n\nWords.\n",
        c='{"title": "A", "date": "2024-01-02"}\n\nWords.\n',
        d="Title: A\nDate: 2024-01-02\n\nWords.\n",
    )
    posts = {slug: change(slug, title="B", excerpt="C") for slug in "abcd"}
    assert run("pull", here)[1][-1] == counts(updated=4)
    for slug, post in posts.items():
        fields = parse((here / f"{slug}.md").read_bytes()).fields
        assert {name: post[name] for name in ("title", "excerpt", "content")} | fields == fields, slug
        assert fields.get("published_at") == post.get("published_at"), slug
    assert run("push", here)[1][-1] == counts(unchanged=4)


@cases(
    ("old", "new"),
    ("Hello   # a greeting", "'Hello'"),
    ("tags: [a, 'b c']", "categories: a, b c"),
    ("date: 2026-01-02", "published_at: 2026-01-02T01:00:00+01:00\nstatus: published"),
    ("layout: wide", "params:\n  layout: wide"),
    (HELLO, HELLO.replace("\n", "\r\n")),
)
def test_another_spelling_is_not_a_change(run, folder, there, old, new):
    here = folder(hello=HELLO)
    run("push", here, "--publish")
    before = there()
    edit(here / "hello.md", old, new)
    for command in ("push", "pull"):
        assert run(command, here) == (0, [counts(unchanged=1)])
    assert there() == before


@pytest.mark.slow
@pytest.mark.parametrize("program", ["astro", "eleventy", "hugo", "jekyll", "obsidian", "zola"])
def test_another_programs_folder_is_read_as_by_an_import(run, blog, tmp_path, program, there):
    here = shutil.copytree(SAMPLES / program, tmp_path / "folder")
    before = contents(here)
    _, lines = run("push", here)
    created, *_, failed = map(int, re.findall("[0-9]+", lines[-1]))
    assert created == len(there()) > 0
    imported = blog.blogapi("import", str(here)).stdout
    assert f"made 0, changed 0, unchanged {created}, refused {failed}" in imported
    skipped = {"skipped": failed} if failed else {}
    assert run("push", here)[1][-1] == counts(unchanged=created, **skipped)
    assert run("pull", here)[1][-1] == counts(unchanged=created, **skipped)
    assert contents(here) == before
    assert run("pull", tmp_path / "other", "--images")[1][-1] == counts(created=created)
    assert run("push", tmp_path / "other")[1] == [counts(unchanged=created)]


# Changes on either side, or on both

GONE_HERE_CHANGED = "it is gone here, but its post has changed: pull --theirs restores the file"
GONE_THERE_CHANGED = "it has changed here, but its post is gone: push --recreate creates it again"
GONE_HERE = "gone here a.md: push --delete moves its post to the trash, pull --theirs restores the file"
CHANGES = {
    # (here, there): what a push says, what a pull says (None: the same), and which side's text remains
    ("", ""): ([], None, ""),
    ("edited", ""): (["updated a.md"], [], "here"),
    ("", "edited"): ([CHANGED_THERE.format("a.md")], ["updated a.md"], "there"),
    ("edited", "edited"): ([f"conflict a.md: it has changed on both sides: {WAYS_OUT}"], None, None),
    ("same", "same"): ([], None, ""),
    ("deleted", ""): ([GONE_HERE], None, None),
    ("", "deleted"): ([GONE_THERE.format("a.md")], None, None),
    ("edited", "deleted"): ([f"conflict a.md: {GONE_THERE_CHANGED}"], None, None),
    ("deleted", "edited"): ([f"conflict a.md: {GONE_HERE_CHANGED}"], None, None),
    ("deleted", "deleted"): ([], None, None),
}


@pytest.fixture
def changed(synced, blog, change):
    """A folder and a blog that were in sync, then changed."""

    def both(here, there):
        folder_here = synced(a="# A\n\nWords.\n", b="# B\n\nWords.\n", c="# C\n")
        if here == "deleted":
            (folder_here / "a.md").unlink()
        elif here:
            edit(folder_here / "a.md", "Words", "Words, here" if here == "edited" else "The same")
        if there == "deleted":
            assert blog.request("DELETE", "/v1/posts/by-slug/a")[0] == 204
        elif there:
            record(folder_here, updated_at="2020-01-01T00:00:00Z")  # as if it had not been changed in the same second
            change("a", content=f"# A\n\n{'Words, there' if there == 'edited' else 'The same'}.\n")
        return folder_here

    return both


@pytest.mark.parametrize("changes", list(CHANGES))
def test_no_change_is_overwritten(run, changed, there, changes):
    folder, (pushed, pulled, words) = changed(*changes), CHANGES[changes]
    before = contents(folder), there()
    for command, said in (("push", pushed), ("pull", pushed if pulled is None else pulled)):
        foreseen = [line.removeprefix("would be ") for line in run(command, folder, "--dry-run")[1]]
        assert (contents(folder), there()) == before
        first, second = run(command, folder), run(command, folder)
        assert first[1][:-1] == foreseen[:-1] == said
        assert first[0] == 2 * any(line.startswith("conflict") for line in said)
        left = [line for line in said if not line.startswith("updated")]
        assert second[1][:-1] == left
        if words is None:
            assert (contents(folder), there()) == before
        before = contents(folder), there()
    if words is not None:
        assert contents(folder)["a.md"].decode() == there()["a"]["content"]
        assert words in there()["a"]["content"]
    assert bool(read_state(folder)[1].get("a.md")) is (changes != ("deleted", "deleted"))


def test_a_conflict_is_resolved_by_overwriting_or_by_setting_the_file_aside(run, changed, there):
    folder = changed("edited", "edited")
    assert run("pull", folder, "--theirs")[1][0] == "updated a.md: your version is now a.mine.md"
    assert contents(folder)["a.mine.md"] == b"# A\n\nWords, here.\n"
    assert contents(folder)["a.md"] == b"# A\n\nWords, there.\n"
    left_out = f"Left out: 1 file that a pull set aside ({folder}/a.mine.md)."
    assert run("push", folder)[1] == [left_out, counts(unchanged=3)]
    (folder / "b.md").unlink()  # by mistake
    assert run("pull", folder, "--theirs")[1][0] == "created b.md"
    (folder / "a.mine.md").replace(folder / "a.md")
    assert run("push", folder)[1][0] == "updated a.md"
    assert there()["a"]["content"] == "# A\n\nWords, here.\n"


def test_a_file_whose_post_has_changed_or_is_gone_is_sent_with_an_option_for_that(run, changed, there, blog):
    folder = changed("edited", "edited")
    assert run("push", folder, "--recreate")[0] == 2
    assert run("push", folder, "--overwrite")[1][0] == "updated a.md"
    assert there()["a"]["content"] == "# A\n\nWords, here.\n"
    blog.request("DELETE", "/v1/posts/by-slug/a")
    assert run("push", folder, "--overwrite")[1][0] == GONE_THERE.format("a.md")
    assert run("push", folder, "--recreate")[1][0] == "created a.md"
    assert there().keys() == {"a", "b", "c"}


@pytest.mark.parametrize("edited", [False, True])
def test_delete_removes_what_is_gone_on_the_other_side_if_it_has_not_changed(run, changed, there, edited, change, blog):
    folder = changed("deleted", "edited" if edited else "")
    status, (said, *_) = run("push", folder, "--delete")
    assert (status, said) == (2 * edited, f"conflict a.md: {GONE_HERE_CHANGED}" if edited else "deleted a.md")
    assert ("a" in there()) is edited
    blog.request("DELETE", "/v1/posts/by-slug/b")
    if edited:
        edit(folder / "b.md", "Words", "Other words")
    _, lines = run("pull", folder, "--delete")
    assert (f"conflict b.md: {GONE_THERE_CHANGED}" if edited else "deleted b.md") in lines
    assert (folder / "b.md").exists() is edited
    trash = {entry["post"]["slug"] for entry in blog.request("GET", "/v1/trash")[2]}
    assert {"b"} | (set() if edited else {"a"}) <= trash


# Names, slugs and identities


def test_a_file_can_be_renamed_and_its_post_can_get_another_slug(run, synced, there):
    here = synced(a="---\nid: x\nslug: a\n---\n# A\n", b="# B\n")
    (here / "sub").mkdir()
    (here / "b.md").rename(here / "sub/renamed.md")
    (here / "a.md").rename(here / "c.md")
    edit(here / "c.md", "slug: a", "slug: other")
    edit(here / "c.md", "# A", "# A\n")
    _, lines = run("push", here)
    assert lines[0] == "renamed sub/renamed.md: was b.md"
    # Neither its bytes nor its slug reveal that c.md was a.md.
    assert "created c.md" in lines
    assert there().keys() == {"a", "b", "other"}
    edit(here / "c.md", "slug: other", "slug: third")
    assert "updated c.md" in run("push", here)[1]
    assert there().keys() == {"a", "b", "third"}


def test_a_post_older_than_recorded_is_a_conflict_unless_its_content_is_the_same(run, synced, change):
    here = synced(a="# A\n")
    change("a", excerpt="Newer.")
    run("pull", here)
    for time in ("1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z"):
        for command in ("push", "pull"):  # It was only touched: the texts are the same.
            record(here, updated_at=time)
            assert run(command, here) == (0, [counts(unchanged=1)])
    change("a", excerpt="Restored.")
    record(here, updated_at=time)
    whole, back = contents(here)["a.md"], "its post went back to an earlier version"
    for mine, said in ((whole, back), (b"", f"it is gone here, and {back}"), (whole + b"Edited.\n", back)):
        (here / "a.md").unlink(missing_ok=True)
        if mine:
            (here / "a.md").write_bytes(mine)
        for command in ("push", "pull"):
            assert run(command, here)[1][0].startswith(f"conflict a.md: {said}"), mine
    run("pull", here, "--theirs")
    assert b"Restored." in contents(here)["a.md"]
    assert contents(here)["a.mine.md"] == mine


def test_the_publication_of_a_scheduled_post_is_not_a_change(run, synced, change, there):
    here = synced(a="---\nstatus: scheduled\npublished_at: 2099-01-01\n---\n# A\n")
    assert there()["a"]["status"] == "scheduled"
    change("a", status="published", published_at="2026-01-01T00:00:00Z")
    edit(here / "a.md", "2099-01-01", "2026-01-01")
    for command in ("pull", "push"):
        assert run(command, here) == (0, [counts(unchanged=1)])
    assert there()["a"]["status"] == "published"


def test_texts_that_are_removed_on_one_side_are_cleared_on_the_other(run, synced, there, change):
    texts = {name: EXAMPLE[name] for name in SHORT_TEXTS if name in OPTIONAL}
    lines = "".join(f"{name}: {text}\n" for name, text in texts.items())
    here = synced(a=f"---\ntitle: A\n{lines}---\n\nB\n")
    assert there()["a"].items() >= texts.items()
    next_second()
    edit(here / "a.md", lines, "")
    assert run("push", here)[1][-1] == counts(updated=1)
    assert there()["a"].keys().isdisjoint(texts)
    for text in ("Again", ""):
        next_second()
        change("a", **dict.fromkeys(texts, text))
        assert run("pull", here)[1][-1] == counts(updated=1)
        for name in texts:
            assert (f"\n{name}: Again\n" in (here / "a.md").read_text()) is bool(text), name
            assert text or name not in (here / "a.md").read_text()
