"""Push: the slugs of files and posts, which files can take from each other."""

import shutil

import pytest

from blogapi.wings.sync.client import NotSynced, Remote
from blogapi.wings.sync.compare import WAYS_OUT
from tests.blogs import write_files
from tests.sync.conftest import CHANGED_HERE, counts, edit, texts

TEXT = "---\nslug: {}\nstatus: {}\n---\nText {}.\n"


@pytest.fixture
def renamed(run, folder):
    """Push files with these slugs, then give them others; return the folder."""

    def rename(status="published", /, **slugs):
        here = folder(**{name: TEXT.format(name, status, name) for name in slugs})
        run("push", here)
        return folder(**{name: TEXT.format(slug, status, name) for name, slug in slugs.items()})

    return rename


@pytest.mark.parametrize("status", ["draft", "published"])
@pytest.mark.parametrize("last", ["d", "a"])
def test_a_slug_can_go_to_a_file_whose_own_slug_goes_to_another(run, renamed, there, status, last):
    here = renamed(status, a="b", b="c", c=last)
    assert sorted(run("push", here)[1]) == sorted([*(f"updated {name}.md" for name in "abc"), counts(updated=3)])
    assert texts(there()) == {"b": "Text a.\n", "c": "Text b.\n", last: "Text c.\n"}
    assert run("push", here) == (0, [counts(unchanged=3)])
    former = {slug: post["former_slugs"] for slug, post in there().items() if "former_slugs" in post}
    assert former == ({"b": ["a"]} if (status, last) == ("published", "d") else {})


@pytest.mark.parametrize("slug_of_b", ["c", "a"])
def test_posts_keep_their_slugs_if_one_that_would_give_its_slug_up_has_changed(run, renamed, there, change, slug_of_b):
    here = renamed(a="b", b=slug_of_b)
    change("b", excerpt="Theirs.")
    status, lines = run("push", here)
    assert (status, {line.partition(".md")[0] for line in lines[:2]}) == (2, {"failed a", "conflict b"})
    assert texts(there()) == {"a": "Text a.\n", "b": "Text b.\n"}
    assert not any("former_slugs" in post for post in there().values())


def test_a_swap_takes_no_slug_that_another_post_has(run, renamed, there, blog):
    here = renamed(a="b", b="a")
    for post in [*there().values()]:
        blog.request("PUT", f"/v1/posts/by-slug/{post['slug']}-{post['id']}", {"title": "X", "content": "X"})
    run("push", here)
    assert texts(there()).items() >= {"a": "Text b.\n", "b": "Text a.\n"}.items()


@pytest.mark.parametrize("many", [0, 20])
def test_a_swap_overwrites_no_change_of_the_same_moment(run, renamed, folder, there, change, monkeypatch, many):
    folder(**{f"p{number}": "Words.\n" for number in range(many)})  # With so many, posts come from a list.
    here = renamed(a="b", b="a")
    write, slugs = Remote.write, ["a", "b"]

    def meanwhile(remote, method, *arguments, **condition):
        while slugs and method == "PATCH":
            change(slugs.pop(), excerpt="Theirs.")
        return write(remote, method, *arguments, **condition)

    monkeypatch.setattr(Remote, "write", meanwhile)
    assert run("push", here)[0] == 2
    assert [there()[slug].get("excerpt") for slug in "ab"] == ["Theirs."] * 2


def test_a_swap_that_failed_halfway_is_completed_by_the_next_push(run, renamed, there, monkeypatch):
    here = renamed(a="b", b="a")
    write, methods = Remote.write, []

    def fail_once(remote, method, *arguments, **condition):
        methods.append(method)
        if methods.count("PUT") == 2 and method == "PUT":
            raise NotSynced("busy")
        return write(remote, method, *arguments, **condition)

    monkeypatch.setattr(Remote, "write", fail_once)
    assert run("push", here)[1][:2] == ["failed a.md: busy", "updated b.md"]
    assert run("push", here) == (0, ["updated a.md", counts(updated=1, unchanged=1)])
    assert texts(there()) == {"b": "Text a.\n", "a": "Text b.\n"}


def test_another_slug_in_a_file_is_sent_although_a_pull_came_first(run, renamed, there):
    here = renamed(a="b")
    assert (run("pull", here)[1][0], run("push", here)[1][0]) == (CHANGED_HERE.format("a.md"), "updated a.md")
    assert there().keys() == {"b"}


@pytest.mark.parametrize("former", ["", "former_slugs: [z]\n", "former_slugs: []\n"])
def test_a_renamed_post_keeps_its_former_slug_even_if_the_file_does_not_name_it(run, synced, folder, change, former):
    here = synced(a=f"---\ntitle: A\nslug: a\n{former}status: published\n---\nA\n")
    folder(a=f"---\ntitle: A\nslug: b\n{former}status: published\n---\nA\n")
    assert run("push", here) == (0, ["updated a.md", counts(updated=1)])
    assert change("a")["former_slugs"] == ["a", *(["z"] if "z" in former else [])]
    assert [run(command, here)[1] for command in ("push", "pull")] == [[counts(unchanged=1)]] * 2
    change("b", slug="c")
    assert [run(command, here)[1][0] for command in ("pull", "push")] == ["updated a.md", counts(unchanged=1)]


@pytest.mark.parametrize("name", ["new", "a"])
def test_a_new_file_can_have_the_slug_that_another_gives_up(run, synced, folder, there, name):
    here = synced(b="---\nslug: a\nstatus: published\n---\nOld.\n")
    folder(b="---\nslug: c\nstatus: published\n---\nOld.\n", **{name: "---\nslug: a\n---\nNew.\n"})
    done = ["updated b.md", f"created {name}.md", counts(created=1, updated=1)]
    assert run("push", here, "--dry-run")[0] == 0
    assert run("push", here) == (0, done)
    assert texts(there()) == {"a": "New.\n", "c": "Old.\n"}
    assert not any("former_slugs" in post for post in there().values())
    assert run("push", here) == (0, [counts(unchanged=2)])


def test_without_the_state_a_file_with_the_former_slug_of_a_post_belongs_to_it(run, synced, there, change):
    here = synced(a="---\nstatus: published\n---\n# A\n")
    change("a", slug="b")
    (here / ".blogapi.json").unlink()
    assert [run(command, here) for command in ("pull", "push")] == [(0, [counts(unchanged=1)])] * 2
    assert there().keys() == {"b"}


def test_without_a_state_a_slug_renames_the_post_that_its_file_names_if_it_is_valid(run, synced, folder, there):
    here = synced(a="# A\n")
    for slug, expected in (("new", "new"), ("Not valid!", "new")):
        (here / ".blogapi.json").unlink()
        (post,) = there().values()
        folder(a=f"---\nid: {post['id']}\ncreated_at: {post['created_at']}\nslug: {slug}\n---\n{slug}\n")
        assert run("push", here, "--overwrite")[1][0].startswith("updated a.md")
        assert [(post["slug"], post["content"]) for post in there().values()] == [(expected, f"{slug}\n")]


# Slugs that were made from names


def test_a_generated_slug_stays_when_other_files_come_and_go(run, folder, there, tmp_path):
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
    slugs = {post["title"]: slug for slug, post in there().items()}
    assert slugs == {"2024, edited": "2024-hello", "2022": "2022-hello"}


def test_a_slug_that_another_file_has_does_not_count_as_a_change(run, folder, there):
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
    here = folder(y="---\nslug: x\n---\n# Y\n", z="---\nslug: x\n---\n# Z\n")
    failed = "failed {}.md:2: {}.md also has the slug x: give one of them another `slug`"
    assert run("push", here) == (1, [failed.format("z", "y"), "created y.md", counts(created=1, failed=1)])
    (here / "z.md").rename(here / "a.md")
    folder(y="---\nslug: x\n---\n# Y, edited\n")
    for lines in (["updated y.md", counts(updated=1, failed=1)], [counts(unchanged=1, failed=1)]):
        assert run("push", here) == (1, [failed.format("a", "y"), *lines])
    assert texts(there()) == {"x": "# Y, edited\n"}


def test_without_a_state_a_file_that_could_be_several_posts_is_refused_and_nothing_is_created(run, synced, there):
    here = synced(hello="# First\n")
    (here / ".blogapi.json").unlink()
    (here / "hello.md").unlink()
    write_files(here, {f"{year}/hello.md": f"# {year}\n" for year in ("2023", "2024")})
    assert run("push", here)[1][:2] == [
        "failed 2024/hello.md: 2023/hello.md also has the slug hello: give one of them another `slug`",
        f"conflict 2023/hello.md: the post hello differs from the file: {WAYS_OUT}",
    ]
    assert texts(there()) == {"hello": "# First\n"}


def test_a_new_file_with_the_slug_that_a_post_got_there_is_refused(run, synced, folder, there, change):
    here = synced(a="# A\n")
    change("a", slug="x")
    folder(x="# X\n")
    reason = "another post also has the slug x: give one of them another `slug`"
    assert (run("push", here)[1][0], texts(there())) == (f"failed x.md: {reason}", {"x": "# A\n"})
