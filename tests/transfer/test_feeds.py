"""Feeds, exports of Blogger, Medium and Substack, and exports that are too large."""

import json
import os
import re

import pytest

from blogapi.wings.transfer.items import Failure, Note
from tests.blogs import SAMPLES, open_sources, read, write_files
from tests.cases import cases
from tests.timing import time_limit
from tests.transfer.conftest import ATOM, ENTRY, MEDIUM, SUBSTACK, TAKEOUT, WXR_HEAD

KIND = (
    "<category scheme='http://schemas.google.com/g/2005#kind' term='http://schemas.google.com/blogger/2008/kind#{}'/>"
)
OLD = (
    "<entry><id>tag:blogger.com,1999:blog-1.post-2</id>{kind}"
    "<category scheme='http://www.blogger.com/atom/ns#' term='bread'/>"
    "<published>2024-03-05T18:22:41.000+01:00</published><title>Rye &amp;amp; more</title>{draft}"
    "<author><name>Ada</name></author><content type='html'>&lt;p&gt;Flour.&lt;/p&gt;</content>"
    "<link rel='alternate' href='https://k.example/2024/03/rye.html'/></entry>"
)
DRAFT = "<app:control><app:draft>yes</app:draft></app:control>"


def old_backup(*entries):
    return ATOM.format(more="", entries="".join(entries))


def test_the_old_backup_of_blogger_is_read(write, read_file):
    entries = [OLD.format(kind=KIND.format(kind), draft="") for kind in ("post", "comment", "settings", "page")]
    with open_sources(write({"blog.xml": old_backup(*entries)}) / "blog.xml") as sources:
        (item,) = sources
        assert sources.left_out == {"comment": 1, "settings": 1, "page": 1}
        assert not sources.unread_settings
    assert item.fields == {
        "title": "Rye & more",
        "slug": "rye",
        "status": "published",
        "published_at": "2024-03-05T17:22:41Z",
        "tags": ["bread"],
        "params": {"author": "Ada"},
        "content": "Flour.\n",
    }
    assert item.old_paths == ("/2024/03/rye.html",)
    draft = read_file("draft.xml", old_backup(OLD.format(kind=KIND.format("post"), draft=DRAFT)))
    assert draft.fields["status"] == "draft"


def test_the_feed_of_takeout_is_read(write):
    entries = [("POST", "LIVE"), ("POST", "DRAFT"), ("POST", "SOFT_TRASHED"), ("COMMENT", "LIVE"), ("PAGE", "LIVE")]
    text = "".join(TAKEOUT.format(number=n, kind=kind, status=status) for n, (kind, status) in enumerate(entries))
    feed = ATOM.format(more=" xmlns:blogger='http://schemas.google.com/blogger/2018'", entries=text)
    with open_sources(write({"feed.atom": feed}) / "feed.atom") as sources:
        found = {item.fields["slug"]: item.fields["status"] for item in sources}
        assert found == {"post-0": "published", "post-1": "draft"}
        assert sources.left_out == {"post (trash)": 1, "comment": 1, "page": 1}


FIRST = {"url": "https://k.example/x-y", "title": "X", "content_html": "<p>Hi</p>", "tags": ["a"]}
SECOND = {"id": "2", "content_text": "Plain text.", "date_published": "2024-03-05T10:00:00Z"}
JSON_FEED = {"version": "https://jsonfeed.org/version/1.1", "items": [FIRST | {"date_published": "2024-03-05"}, SECOND]}


def test_feeds_are_read(write, read_file):
    top = write({"a.rss": (SAMPLES / "exports/feed.rss").read_text(), "c.json": json.dumps(JSON_FEED)})
    rye, note = (item.fields for item in read(top / "a.rss"))
    assert (rye["title"], rye["slug"], rye["published_at"]) == ("Rye", "rye-bread", "2024-03-05T17:22:41Z")
    assert (rye["tags"], rye["params"], "excerpt" in rye) == (["bread"], {"author": "Ada"}, False)
    assert (rye["content"], note["title"], note["slug"]) == ("Flour **and** water.\n", "A note", "17")
    entry = read_file("b.atom", ATOM.format(more="", entries=ENTRY)).fields
    assert (entry["title"], entry["slug"], entry["content"]) == ("A b", "a-b", "Hello  \n*you*\n")
    assert (entry["published_at"], entry["tags"], entry["excerpt"]) == ("2024-03-05T09:00:00Z", ["t"], "Sum")
    first, second = (item.fields for item in read(top / "c.json"))
    assert (first["slug"], first["content"], first["tags"]) == ("x-y", "Hi\n", ["a"])
    assert (second["title"], second["content"]) == ("Plain text", "Plain text.")


def test_a_post_that_a_feed_hides_is_a_draft(read_file):
    item = {"url": "https://a.example/b", "content_text": "B", "date_modified": "2024-03-05T10:00:00+01:00"}
    files = {
        "a.atom": old_backup(ENTRY.replace("<title", f"{DRAFT}<title", 1)),
        "b.json": json.dumps(JSON_FEED | {"items": [item | {"visibility": "private"}]}),
        "c.json": json.dumps(JSON_FEED | {"items": [item]}),
    }
    found = [read_file(name, content).fields for name, content in files.items()]
    assert [fields["status"] for fields in found] == ["draft", "draft", "published"]
    assert found[2]["published_at"] == "2024-03-05T09:00:00Z"


def test_a_feed_that_probably_has_only_the_latest_posts_is_reported(write):
    link = "<link rel='next' href='x'/>"
    feeds = {"one": (ENTRY, False), "ten": (ENTRY * 10, True), "next": (ENTRY + link, True)}
    for name, (entries, is_partial) in feeds.items():
        top = write({f"{name}.atom": ATOM.format(more="", entries=entries)})
        with open_sources(top / f"{name}.atom") as sources:
            assert bool(sources.unread_settings) == is_partial, name


@pytest.mark.parametrize(
    ("name", "data", "way"),
    [
        ("a.txt", "AUTHOR: x\nTITLE: A\n-----\n", "an export from Movable Type"),
        ("a.json", '[{"body_markdown": "A"}]', "articles from dev.to"),
        ("a.csv", "uid,title,slug,make_discoverable\n", "a CSV file from Bear"),
        ("b.csv", "id,uid,title,make discoverable,is page\n", "a CSV file from Bear"),
        ("b.json", '{"username": "a", "collections": [{"posts": []}]}', "an export from Write.as: import the blog"),
        ("c.json", '{"posts": [{"_id": "1", "cuid": "c"}]}', "an export from Hashnode: use its backup"),
        ("a.zip", "PK", "an archive: unpack it"),
        ("a.rst", "A", "pandoc"),
        ("a.qmd", "A", "give it the extension .md"),
    ],
)
def test_other_formats_are_reported_with_advice(tmp_path, read_file, name, data, way):
    assert way in read_file(name, data).reason
    with open_sources(tmp_path) as sources:
        assert (len(sources), [way in line for line in sources.advice()]) == (0, [True])


def test_a_broken_feed_does_no_harm(read_file):
    for text in ("<feed><entry/></feed>", "<rss><channel><item/></channel></rss>"):
        assert read_file("a.xml", text)
    for item in (1, {"title": "a\0b", "content_text": "x"}):  # An id with a control character is no file name.
        assert read_file("a.json", json.dumps(JSON_FEED | {"items": [item]}))


FEED = """<rss version="2.0"><channel><item><title>A</title><link>https://a.example/a</link>
<pubDate>{}</pubDate><description>Text{}</description></item></channel></rss>"""


def test_a_post_of_an_export_is_a_draft_if_its_date_cannot_be_read_or_it_has_text_for_members_only(read_file):
    for text in ("30 Feb 2024", "0000-01-01", "yesterday"):
        item = read_file("a.xml", FEED.format(text, ""))
        assert (item.fields["status"], item.notes[Note.UNREAD_DATES]) == ("draft", (None, text))
    assert read_file("a.xml", FEED.format("", "")).fields["status"] == "published"
    for mark in ("[members_only]", "&lt;!-- wp:jetpack/paywall /--&gt;", "&lt;!--members-only--&gt;"):
        item = read_file("a.xml", FEED.format("2024-03-05", mark))
        assert (item.fields["status"], item.notes[Note.HIDDEN][1][:7]) == ("draft", "paywall"), mark


def test_blogger_and_ghost_publish_nothing_that_is_scheduled_without_a_date_or_only_for_mail(read_file):
    entry = "<entry><blogger:type>POST</blogger:type><blogger:status>SCHEDULED</blogger:status><title>A</title>"
    feed = f"<feed xmlns='http://www.w3.org/2005/Atom' xmlns:blogger='http://schemas.google.com/blogger/2018'>{entry}"
    post = read_file("feed.atom", f"{feed}<content>Text</content><published>soon</published></entry></feed>")
    assert post.fields["status"] == "draft"
    row = {"id": "1", "title": "A", "slug": "a", "html": "<p>A</p>", "status": "scheduled"}
    row["published_at"] = "2035-03-05T10:00:00.000Z"
    data = {"posts": [row], "posts_meta": [{"post_id": "1", "email_only": 1}]}
    assert read_file("ghost.json", json.dumps({"db": [{"data": data}]})).fields["status"] == "draft"


def test_an_export_of_medium_is_read(tmp_path):
    answer = re.sub("<h3.*</h3>", "", MEDIUM.replace("Rye bread", "Well said. I…"))
    files = {
        "posts/2019-05-04_Rye-bread-0a1b2c3d4e5f.html": MEDIUM,
        "posts/draft_Later-0a1b2c3d4e5e.html": MEDIUM.replace("Rye bread", "Later").replace("dt-published", "x"),
        "posts/2019-05-05_Well-said-0a1b2c3d4e50.html": answer.replace('"graf">', '"graf">Well said. I agree. '),
        "profile/about.html": "<p>Me.",
    }
    with open_sources(write_files(tmp_path, files)) as sources:
        rye, response, draft = sources
        assert sources.unread == {"file with the extension .html": [f"{tmp_path}/profile/about.html"]}
    assert rye.fields == {
        "title": "Rye bread",
        "slug": "rye-bread",
        "status": "published",
        "published_at": "2019-05-04T07:30:00Z",
        "excerpt": "Short.",
        "params": {"author": "Ada", "canonical_url": "https://medium.com/@ada/rye-bread-0a1b2c3d4e5f"},
        "content": "Rye bread is **and** water.\n\n![](https://cdn-images-1.medium.com/max/800/1*x.jpeg)\n\nA loaf\n",
    }
    assert rye.old_paths == ("/@ada/rye-bread-0a1b2c3d4e5f",)
    assert (draft.fields["title"], draft.fields["status"]) == ("Later", "draft")
    assert (response.fields["status"], response.notes["hidden"]) == ("draft", (None, "status: response"))


def test_an_export_of_substack_is_read(tmp_path):
    posts = {f"blog/posts/{name}.html": f"<p>Text of <em>{name}</em>.</p>" for name in ("1.rye", "2.paid", "3.later")}
    top = write_files(tmp_path, posts | {"blog/posts.csv": SUBSTACK, "secret.html": "Secret."}) / "blog"
    with open_sources(top) as sources:
        found = [*sources]
        assert sources.unread == {}
    items = {item.fields["slug"]: item.fields for item in found if not isinstance(item, Failure)}
    assert {slug: (fields["status"], fields.get("published_at")) for slug, fields in items.items()} == {
        "rye": ("published", "2024-03-05T18:22:41Z"),
        "paid": ("draft", "2024-03-06T00:00:00Z"),
        "later": ("draft", None),
    }
    assert (items["rye"]["title"], items["rye"]["excerpt"]) == ("Rye, bread", "Short.")
    assert items["rye"]["content"] == "Text of *1.rye*.\n"
    reasons = [each.reason for each in found if isinstance(each, Failure)]
    assert reasons == ["its HTML file is missing", "its HTML file cannot be read"]


def test_exports_that_do_not_fit_into_memory_are_refused(tmp_path):
    (tmp_path / "a.json").touch()
    os.truncate(tmp_path / "a.json", 200 * 1024**2)
    (tmp_path / "b.xml").write_text(f"{WXR_HEAD}<item><title>{'a' * 33 * 1024**2}</title></item></channel></rss>")
    assert [str(item) for item in read(tmp_path / "a.json", tmp_path / "b.xml")] == [
        f"{tmp_path}/a.json: must have at most 128 MiB",
        f"{tmp_path}/b.xml: an item must have at most 32 MiB",
    ]


@cases("token", ["<a b='{}'/>", "<a b='{}", "<!--{}-->", "<?a {}?>", "<{}>"])
def test_a_long_tag_in_xml_is_refused_before_it_takes_seconds(tmp_path, token):
    file = tmp_path / "a.xml"
    file.write_text(f"{WXR_HEAD}<item>{token.format('x' * 8_000_000)}</item></channel></rss>")
    with time_limit(1):
        assert [str(item) for item in read(file)] == [f"{file}: a tag must have at most 1 MiB"]
    file.write_text(f"{WXR_HEAD}<item><title>{'x' * 2**21}</title><a b='{'x' * 1_000_000}'/></item></channel></rss>")
    assert "a tag" not in str([*read(file)])
