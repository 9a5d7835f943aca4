"""Blogs of Jekyll: their tags, and the former addresses of their posts."""

import pytest

from tests.blogs import read


@pytest.mark.parametrize(
    ("folder", "text", "tags"),
    [
        ("_posts", "tags: cats dogs\ncategories: jekyll update", ["cats", "dogs", "jekyll", "update"]),
        ("news/_drafts", "tags: cats  dogs", ["cats", "dogs"]),
        ("_posts", "tags: big cats, dogs", ["big cats", "dogs"]),
        ("_posts", "tags: [big cats]\ncategory: jekyll update", ["big cats", "jekyll update"]),
        ("posts", "tags: cats dogs", ["cats dogs"]),
    ],
)
def test_only_tags_of_jekyll_are_split_at_spaces(item, folder, text, tags):
    assert item(text, f"{folder}/2020-01-02-a.md").fields["tags"] == tags


DATED = "date: 2020-01-02 03:04:05 +0500\ncategories: News Big-News"
DEFAULTS = "defaults: [{scope: {path: '', type: posts}, values: {permalink: /news/:title/}}]"


@pytest.mark.parametrize(
    ("config", "options", "text", "path"),
    [
        ("", {}, DATED, "/news/big-news/2020/01/02/A_b.html"),
        ("title: x", {}, DATED, "/x/news/big-news/2020/01/02/A_b.html"),
        ("permalink: pretty", {}, DATED, "/x/news/big-news/2020/01/02/A_b/"),
        (f"permalink: none\n{DEFAULTS}", {}, DATED, "/news/A_b/"),
        ("permalink: none", {}, DATED, "/x/news/big-news/A_b.html"),
        ("permalink: /:year-:i_month/:slug:output_ext", {}, DATED, "/2020-1/a-b.html"),
        ("permalink: /:unknown/:title", {}, DATED, "/x/news/big-news/2020/01/02/A_b.html"),
        ("permalink: [", {}, DATED, "/x/news/big-news/2020/01/02/A_b.html"),
        ("permalink: pretty", {"permalink": "/:y_day/:title"}, DATED, "/002/A_b"),
        ("", {"permalink": "/:y_day/:title"}, f"{DATED}\npermalink: /p/:day/:title", "/p/02/A_b"),
        ("", {}, f"{DATED}\npermalink: /p/", "/p/"),
        ("", {}, "slug: own\ncategory: a b", "/a b/2020/01/02/own.html"),
        ("", {}, "published: false", None),
    ],
)
def test_the_former_address_of_a_post_follows_the_pattern_of_its_site(write, item, config, options, text, path):
    write({"_config.yml": config} if config else {})
    old_paths = item(text, "x/_posts/2020-01-02-A_b.md", **options).old_paths
    assert next((old for old in old_paths if "/" in old[1:]), None) == path


def test_a_pattern_is_for_other_sites_too(write):
    top = write({"2020-01-02-a.md": "A", "b.md": "---\ndate: 2020-01-02\n---\nB", "c.md": "C"})
    items = read(top, permalink="/:year/:title/")
    assert {item.fields["slug"]: item.old_paths for item in items} == {"a": ("/2020/a/",), "b": ("/2020/b/",), "c": ()}


def test_folders_above_posts_are_categories_and_those_below_are_not(write, item):
    write({"_config.yml": ""})
    assert item("", "es/_posts/2020/2020-01-02-a.md").old_paths == ("/es/2020/01/02/a.html",)
