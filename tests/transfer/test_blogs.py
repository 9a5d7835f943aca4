"""The folders of the sample blogs, and which files in a folder are read."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from blogapi.wings.transfer.items import NO_FILE, Failure, Item
from tests.blogs import SAMPLES, open_sources, read, run_without_rights


def test_a_jekyll_post_is_read_with_everything_in_it():
    rye = read(SAMPLES / "jekyll")[0]
    assert replace(rye, file=NO_FILE) == Item(
        f"{SAMPLES}/jekyll/_posts/2019-05-04-rye-starter.markdown",
        {
            "title": "A rye starter",
            "tags": ["rye", "sourdough", "bread"],
            "params": {"layout": "post", "image": "/assets/rye.jpg"},
            "published_at": "2019-05-04T07:30:00Z",
            "content": "Flour, water, patience.\n\n{% include gallery.html %}\n",
            "slug": "rye-starter",
            "status": "published",
        },
        "2019-05-04T07:30:00Z",
        NO_FILE,
        ("/bread/2019/05/04/rye-starter.html",),
        notes={"covers": 7, "shortcodes": 12},
    )
    assert rye.file.lines == {"layout": 2, "title": 3, "date": 4, "categories": 5, "tags": 6, "image": 7}
    assert [rye.file.line_of(field) for field in ("cover_image", "published_at", "excerpt")] == [7, 4, None]


BLOGS = {
    "jekyll": [
        ("rye-starter", "published", "2019-05-04T07:30:00Z", ["rye", "sourdough", "bread"], ["layout", "image"]),
        ("leap-day", "draft", "2020-02-29T00:00:00Z", None, ["layout", "permalink"]),
        ("crackers", "draft", None, ["rye", "thin things"], ["layout"]),
    ],
    "hugo": [
        ("first-loaf", "published", "2021-03-04T05:06:07Z", ["Sourdough", "bread"], ["lastmod", "cover"]),
        ("focaccia-genovese", "draft", "2022-06-07T06:09:10Z", ["oil", "2022"], ["math"]),
    ],
    "zola": [("pizza-napoletana", "published", "2023-01-02T00:00:00Z", ["pizza", "oven", "dinner"], ["path", "extra"])],
    "eleventy": [
        ("moved-here", "published", "2017-08-09T00:00:00Z", None, ["permalink"]),
        ("fourthpost", "published", "2018-09-30T00:00:00Z", ["second tag"], []),
        ("pattern", "draft", "2018-10-01T00:00:00Z", None, ["permalink", "eleventyExcludeFromCollections"]),
    ],
    "astro": [
        ("first-post", "published", "2022-07-08T00:00:00Z", ["astro", "blogging"], ["image"]),
        ("using-mdx", "published", "2024-06-01T00:00:00Z", None, ["heroImage"]),
    ],
}


@pytest.mark.parametrize(("blog", "expected"), BLOGS.items(), ids=BLOGS)
def test_the_posts_of_a_blog_are_read_in_the_order_of_their_dates(blog, expected):
    items = read(SAMPLES / blog)
    names = ("slug", "status", "published_at", "tags")
    found = [(*map(item.fields.get, names), [*item.fields.get("params", {})]) for item in items]
    assert found == expected
    assert [item.created_at for item in items] == [item.fields.get("published_at") for item in items]


def test_obsidian_notes_are_read_and_a_broken_one_is_reported_with_its_line():
    note, inbox, broken = read(SAMPLES / "obsidian")
    fields = {"title": "Über Brot", "slug": "uber-brot", "content": "# Über Brot\n\n[[Mehl]] und Wasser.\n"}
    assert note.fields == fields | {"tags": ["brot", "küche"], "params": {"aliases": []}}
    assert note.created_at == "2020-12-24T18:00:00Z"
    assert note.notes == {"other dates": (6, "created_at"), "other slugs": None, "wiki links": 11}
    assert inbox.fields == {"title": "Inbox", "content": "- [ ] buy flour\n", "slug": "inbox"}
    assert inbox.created_at is None
    reason = "not valid YAML: mapping values are not allowed here: put the text in quotes"
    assert str(broken) == f"{SAMPLES}/obsidian/broken.md:2: {reason}"


# Finding files


def test_hidden_built_and_installed_files_are_not_read(write):
    folders = (".git", "node_modules/x", "bower_components", "x/_site", "vendor")
    names = [*(f"{folder}/a.md" for folder in folders), "_index.md", "de/_index.de.md", ".f.md", "g.txt"]
    top = write(dict.fromkeys(names, "# A"))
    assert read(top) == []
    write({"public/a.md": "# A", "x/dist/b.md": "# B"})  # An author may have chosen these names.
    assert [item.fields["slug"] for item in read(top)] == ["a", "b"]
    assert [item.fields["slug"] for item in read(top / "vendor", top / ".f.md")] == ["a", "f"]


def test_a_file_is_read_once_and_linked_folders_are_not_entered(write):
    top = write({"blog/a.md": "# A", "elsewhere/c.md": "# C"}) / "blog"
    (top / "b.md").symlink_to("a.md")
    (top / "loop").symlink_to(top)
    (top / "linked").symlink_to("../elsewhere")
    for paths in ((top,), (top / "a.md", top, top)):
        assert [item.source for item in read(*paths)] == [f"{top}/a.md"]


def test_a_link_out_of_the_folders_is_not_imported(write):
    top = write({"elsewhere/secret.md": "Secret.", "blog/a.md": "A", "blog/deep/d.txt": ""})
    (top / "blog/b.md").symlink_to("../elsewhere/secret.md")
    (top / "blog/deep/c.md").symlink_to("../../blog/a.md")
    with open_sources(top / "blog") as sources:
        assert [item.fields["slug"] for item in sources] == ["a"]
        assert sources.left_out == {"link to a target outside the folders": 1}
    with open_sources(top / "blog", top / "elsewhere") as sources:
        assert len(sources) == 2
    assert len(read(top / "blog/b.md")) == 1


def test_folders_of_any_depth_are_entered(tmp_path):
    deep = tmp_path
    for _ in range(1200):
        deep = deep / "a"
        deep.mkdir()
    (deep / "b.md").write_text("# B")
    assert [item.fields["slug"] for item in read(tmp_path)] == ["b"]
    (deep / "b.md").unlink()
    for folder in (deep, *deep.parents[:1199]):  # too deep for pytest to remove
        folder.rmdir()


def test_unreadable_files_are_reported_and_the_others_are_read(tmp_path, write):
    write({"a.md": "# A", "b.md": b"---\n\xff\n---\n", "c.md": b"a" * (4 * 1024**2 + 1)})
    write({"g\n\u202e.md": "---", "h.txt": ""})
    (tmp_path / "d.md").mkdir()
    for name in ("e.md", "i.xml"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "f.md").symlink_to("nowhere")
    (tmp_path / "j.md").symlink_to("j.md")
    missing = ["missing.md", "missing.xml", "missing.json"]
    other = (
        "must be a folder, or a regular file that ends in .md, .markdown, .mdx, .xml, .atom, .rss, .json, .html, .csv"
    )
    found = read(tmp_path, *(tmp_path / name for name in [*missing, "h.txt", "i.xml"]), Path("/dev/zero"))
    assert [str(item) if isinstance(item, Failure) else item.fields["slug"] for item in found] == [
        "a",
        f"{tmp_path}/b.md:2: must be UTF-8",
        f"{tmp_path}/c.md: must have at most 4 MiB",
        f"{tmp_path}/e.md: {other}",
        f"{tmp_path}/f.md: no such file or folder",
        f"{tmp_path}/g\ufffd\ufffd.md:1: the front matter never ends: the closing line --- is missing",
        f"{tmp_path}/j.md: Too many levels of symbolic links",
        *(f"{tmp_path}/{name}: no such file or folder" for name in missing),
        f"{tmp_path}/h.txt: {other}",
        f"{tmp_path}/i.xml: {other}",
        f"/dev/zero: {other}",
    ]


@pytest.mark.slow
def test_unreadable_folders_are_reported_and_the_others_are_read(tmp_path, write):
    write({f"{name}/{name}.md": "# A" for name in ("closed", "listed", "open")})
    (tmp_path / "closed").chmod(0)
    (tmp_path / "listed").chmod(0o400)
    program = (
        "import sys, pathlib\n"
        "from tests.blogs import read\n"
        "for item in read(pathlib.Path(sys.argv[1])): print(getattr(item, 'fields', {}).get('slug', item))"
    )
    refused = [f"{tmp_path}/{name}: Permission denied" for name in ("closed", "listed")]
    assert run_without_rights(program, tmp_path) == [*refused, "open"]
    for name in ("closed", "listed"):
        (tmp_path / name).chmod(0o700)
