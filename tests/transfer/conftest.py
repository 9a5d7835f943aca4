"""Fixtures that write and read files."""

from functools import partial

import pytest

from tests.blogs import SAMPLES, read, write_files

WXR_HEAD = (SAMPLES / "exports/wordpress.xml").read_text().partition("<item>")[0]


@pytest.fixture
def write(tmp_path):
    """Write files below a folder; return it."""
    return partial(write_files, tmp_path)


@pytest.fixture
def item(write):
    """Read a file with this front matter and name, below a folder."""

    def read_one(text, name="a.md", content="Words.", **options):
        (item,) = read(write({name: f"---\n{text}\n---\n\n{content}"}), **options)
        return item

    return read_one


@pytest.fixture
def wordpress(write):
    """Read an export with one post with this content, and additional elements and items."""

    def read_one(content="Words.", elements="", title="A", more="", **options):
        item = (
            f"<title>{title}</title><wp:post_name>a</wp:post_name><link>https://a.example/2020/a/</link>"
            f"<wp:post_id>1</wp:post_id><content:encoded><![CDATA[{content}]]></content:encoded>"
            "<wp:post_date_gmt>2020-01-02 03:04:05</wp:post_date_gmt><wp:post_type>post</wp:post_type>"
            f"<wp:status>publish</wp:status>{elements}"
        )
        export = f"{WXR_HEAD}<item>{item}</item>{more}</channel></rss>"
        (post,) = read(write({"a.xml": export}) / "a.xml", **options)
        return post

    return read_one
