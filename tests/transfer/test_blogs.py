"""The folders of the sample blogs, and what in a folder is read."""

import os
from pathlib import Path

import pytest

from blogapi.transfer.sources import Failure, Item
from tests.blogs import SAMPLES, read, run_without_rights


def test_a_jekyll_blog_is_read():
    folder = f"{SAMPLES}/jekyll"
    items = read(SAMPLES / "jekyll")
    rye, leap_day, crackers = items
    assert rye._replace(file=None) == Item(
        f"{folder}/_posts/2019-05-04-rye-starter.markdown",
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
        None,
        ("/bread/2019/05/04/rye-starter.html",),
        notes={"covers": 7, "shortcodes": 12},
    )
    assert leap_day._replace(file=None) == Item(
        f"{folder}/_posts/2020-02-29-leap-day.md",
        {
            "title": "Leap day",
            "params": {"layout": "post", "permalink": "/:categories/:year/:title/"},
            "status": "draft",
            "content": "Nothing to see.\n",
            "slug": "leap-day",
            "published_at": "2020-02-29T00:00:00Z",
        },
        "2020-02-29T00:00:00Z",
        None,
    )
    assert crackers._replace(file=None) == Item(
        f"{folder}/_drafts/crackers.md",
        {
            "title": "Crackers",
            "params": {"layout": "post"},
            "tags": ["rye", "thin things"],
            "content": "Not yet.\n",
            "slug": "crackers",
            "status": "draft",
        },
        None,
        None,
    )
    assert [item.file.content_line for item in items] == [10, 7, 6]
    assert [item.file.lines for item in items] == [
        {"layout": 2, "title": 3, "date": 4, "categories": 5, "tags": 6, "image": 7},
        {"layout": 2, "title": 3, "permalink": 4, "published": 5},
        {"layout": 2, "title": 3, "tags": 4},
    ]
    assert [rye.file.line_of(field) for field in ("cover_image", "published_at", "excerpt")] == [7, 4, None]


@pytest.mark.parametrize(
    ("blog", "expected"),
    [
        (
            "hugo",
            [
                ("first-loaf", "published", "2021-03-04T05:06:07Z", ["Sourdough", "bread"], ["lastmod", "cover"]),
                ("focaccia-genovese", "draft", "2022-06-07T06:09:10Z", ["oil", "2022"], ["math"]),
            ],
        ),
        (
            "zola",
            [("pizza-napoletana", "published", "2023-01-02T00:00:00Z", ["pizza", "oven", "dinner"], ["path", "extra"])],
        ),
        (
            "eleventy",
            [
                ("moved-here", "published", "2017-08-09T00:00:00Z", None, ["permalink"]),
                ("fourthpost", "published", "2018-09-30T00:00:00Z", ["second tag"], []),
                ("pattern", "published", "2018-10-01T00:00:00Z", None, ["permalink", "eleventyExcludeFromCollections"]),
            ],
        ),
        (
            "astro",
            [
                ("first-post", "published", "2022-07-08T00:00:00Z", ["astro", "blogging"], ["image"]),
                ("using-mdx", "published", "2024-06-01T00:00:00Z", None, ["heroImage"]),
            ],
        ),
    ],
)
def test_the_posts_of_a_blog_are_read_in_the_order_of_their_dates(blog, expected):
    items = read(SAMPLES / blog)
    assert [
        (
            *(item.fields.get(name) for name in ("slug", "status", "published_at", "tags")),
            [*item.fields.get("params", {})],
        )
        for item in items
    ] == expected
    assert [item.created_at for item in items] == [item.fields["published_at"] for item in items]


def test_notes_of_obsidian_are_read_and_a_broken_one_is_named_with_its_line():
    note, inbox, broken = read(SAMPLES / "obsidian")
    assert note.fields == {
        "tags": ["brot", "küche"],
        "title": "Über Brot",
        "content": "# Über Brot\n\n[[Mehl]] und Wasser.\n",
        "slug": "uber-brot",
        "params": {"aliases": []},
    }
    assert (note.created_at, note.notes) == ("2020-12-24T18:00:00Z", {"other slugs": None, "wiki links": 11})
    assert (inbox.fields, inbox.created_at) == (
        {"title": "Inbox", "content": "- [ ] buy flour\n", "slug": "inbox"},
        None,
    )
    assert str(broken) == (
        f"{SAMPLES}/obsidian/broken.md:2: not valid YAML: mapping values are not allowed in this context: "
        "put the text in quotes"
    )


# Where they are found


def test_hidden_built_and_installed_files_are_not_read(tmp_path):
    for name in (
        ".git/a.md",
        "node_modules/x/b.md",
        "bower_components/c.md",
        "x/_site/d.md",
        "vendor/e.md",
        "_index.md",
        "de/_index.de.md",
        ".f.md",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# A")
    (tmp_path / "g.txt").write_text("# A")
    assert read(tmp_path) == []
    assert [item.fields["slug"] for item in read(tmp_path / "vendor", tmp_path / ".f.md")] == ["e", "f"]


def test_folders_that_an_author_may_have_named_are_entered(tmp_path):
    for name in ("public/a.md", "x/dist/b.md"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("# A")
    assert [item.fields["slug"] for item in read(tmp_path)] == ["a", "b"]


def test_folders_that_are_links_are_not_entered(tmp_path):
    (tmp_path / "a.md").write_text("# A")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert [item.source for item in read(tmp_path)] == [f"{tmp_path}/a.md"]


def test_a_link_that_leads_to_itself_is_named(tmp_path):
    (tmp_path / "a.md").symlink_to("a.md")
    assert [str(item) for item in read(tmp_path)] == [f"{tmp_path}/a.md: Too many levels of symbolic links"]


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


def test_a_file_that_is_given_twice_is_read_once(tmp_path):
    (tmp_path / "a.md").write_text("# A")
    (tmp_path / "b.md").symlink_to("a.md")
    assert [item.source for item in read(tmp_path / "a.md", tmp_path, tmp_path)] == [f"{tmp_path}/a.md"]


def test_unreadable_files_are_named_and_the_others_are_read(tmp_path):
    (tmp_path / "a.md").write_text("# A")
    (tmp_path / "b.md").write_bytes(b"---\n\xff\n---\n")
    (tmp_path / "c.md").write_bytes(b"a" * (4 * 1024**2 + 1))
    (tmp_path / "d.md").mkdir()
    os.mkfifo(tmp_path / "e.md")
    (tmp_path / "f.md").symlink_to("nowhere")
    (tmp_path / "g\n\u202e.md").write_bytes(b"---")
    (tmp_path / "h.txt").write_bytes(b"")
    os.mkfifo(tmp_path / "i.xml")
    other = "must be a folder, or a regular file that ends in .md, .markdown, .mdx, .xml, .json"
    found = read(tmp_path, tmp_path / "missing.md", tmp_path / "h.txt", tmp_path / "i.xml", Path("/dev/zero"))
    assert [str(item) if isinstance(item, Failure) else item.fields["slug"] for item in found] == [
        "a",
        f"{tmp_path}/b.md:2: must be UTF-8",
        f"{tmp_path}/c.md: must have at most 4 MiB",
        f"{tmp_path}/e.md: {other}",
        f"{tmp_path}/f.md: no such file or folder",
        f"{tmp_path}/g\ufffd\ufffd.md:1: the front matter never ends: a line --- is missing after it",
        f"{tmp_path}/missing.md: no such file or folder",
        f"{tmp_path}/h.txt: {other}",
        f"{tmp_path}/i.xml: {other}",
        f"/dev/zero: {other}",
    ]


def test_folders_that_cannot_be_read_are_named_and_the_others_are_read(tmp_path):
    for name in ("closed", "listed", "open"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.md").write_text("# A")
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
