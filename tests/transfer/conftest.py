"""Fixtures that write and read files."""

from functools import partial
from itertools import count

import pytest

from tests.blogs import SAMPLES, read, write_files

WXR_HEAD = (SAMPLES / "exports/wordpress.xml").read_text().partition("<item>")[0]
ATOM = "<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom' xmlns:app='http://purl.org/atom/app#'{more}>{entries}</feed>"
TAKEOUT = (
    "<entry><id>tag:blogger.com,1999:blog-1.post-{number}</id><blogger:type>{kind}</blogger:type>"
    "<blogger:status>{status}</blogger:status><published>2024-03-05T18:22:41Z</published>"
    "<title>Post {number}</title><content type='html'>&lt;b&gt;Text&lt;/b&gt;</content>"
    "<blogger:created>2024-03-01T00:00:00Z</blogger:created><category scheme='tag:blogger.com,1999:blog-1' term='x'/>"
    "<blogger:filename>/2024/03/post-{number}.html</blogger:filename></entry>"
)
ENTRY = """<entry><title type="html">A &lt;b&gt;b&lt;/b&gt;</title><link href="https://k.example/a-b.html"/>
<published>2024-03-05T10:00:00+01:00</published><category term="t"/>
<author><name>Ada</name></author><summary>Sum</summary>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>Hello<br/><em>you</em></p></div></content></entry>"""
MEDIUM = (SAMPLES / "exports/medium.html").read_text()
SUBSTACK = (SAMPLES / "exports/substack.csv").read_text()


@pytest.fixture
def write(tmp_path):
    """Write files below a folder; return it."""
    return partial(write_files, tmp_path)


@pytest.fixture
def read_file(write):
    """Read a file with this name and content; return the only item in it."""

    def read_file(name, content):
        (item,) = read(write({name: content}) / name)
        return item

    return read_file


@pytest.fixture
def item(tmp_path):
    """Read a file with this front matter and name, below a folder of its own with these other files."""
    numbers = count()

    def read_one(text, name="a.md", content="Words.", others=None, **options):
        files = {name: f"---\n{text}\n---\n\n{content}"} | (others or {})
        (item,) = read(write_files(tmp_path / f"{next(numbers)}", files), **options)
        return item

    return read_one


@pytest.fixture
def wordpress(write):
    """Read an export that contains a post with this content, and additional elements and items."""

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
