"""Exports of Blogger, and feeds."""

import json

import pytest

from blogapi.wings.transfer.items import Note
from tests.blogs import SAMPLES, open_sources, read, write_files
from tests.transfer.conftest import ATOM, ENTRY, TAKEOUT

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


def test_the_old_backup_of_blogger_is_read(tmp_path):
    entries = [OLD.format(kind=KIND.format(kind), draft="") for kind in ("post", "comment", "settings", "page")]
    top = write_files(tmp_path, {"blog.xml": old_backup(*entries)})
    with open_sources(top / "blog.xml") as sources:
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
    (item,) = read(
        write_files(tmp_path, {"b.xml": old_backup(OLD.format(kind=KIND.format("post"), draft=DRAFT))}) / "b.xml"
    )
    assert item.fields["status"] == "draft"


def test_the_feed_of_takeout_is_read(tmp_path):
    entries = [("POST", "LIVE"), ("POST", "DRAFT"), ("POST", "SOFT_TRASHED"), ("COMMENT", "LIVE"), ("PAGE", "LIVE")]
    text = "".join(TAKEOUT.format(number=n, kind=kind, status=status) for n, (kind, status) in enumerate(entries))
    feed = ATOM.format(more=" xmlns:blogger='http://schemas.google.com/blogger/2018'", entries=text)
    with open_sources(write_files(tmp_path, {"feed.atom": feed}) / "feed.atom") as sources:
        found = {item.fields["slug"]: item.fields["status"] for item in sources}
        assert found == {"post-0": "published", "post-1": "draft"}
        assert sources.left_out == {"post (trash)": 1, "comment": 1, "page": 1}


RSS = (SAMPLES / "exports/feed.rss").read_text()
FIRST = {"url": "https://k.example/x-y", "title": "X", "content_html": "<p>Hi</p>", "tags": ["a"]}
SECOND = {"id": "2", "content_text": "Plain text.", "date_published": "2024-03-05T10:00:00Z"}
JSON_FEED = {"version": "https://jsonfeed.org/version/1.1", "items": [FIRST | {"date_published": "2024-03-05"}, SECOND]}


def test_feeds_are_read(tmp_path):
    files = {"a.rss": RSS, "b.atom": ATOM.format(more="", entries=ENTRY), "c.json": json.dumps(JSON_FEED)}
    top = write_files(tmp_path, files)
    found = {name: [item.fields for item in read(top / name)] for name in files}
    rye, note = found["a.rss"]
    assert (rye["title"], rye["slug"], rye["published_at"]) == ("Rye", "rye-bread", "2024-03-05T17:22:41Z")
    assert (rye["tags"], rye["params"], "excerpt" in rye) == (["bread"], {"author": "Ada"}, False)
    assert (rye["content"], note["title"], note["slug"]) == ("Flour **and** water.\n", "A note", "17")
    (entry,) = found["b.atom"]
    assert (entry["title"], entry["slug"], entry["content"]) == ("A b", "a-b", "Hello  \n*you*\n")
    assert (entry["published_at"], entry["tags"], entry["excerpt"]) == ("2024-03-05T09:00:00Z", ["t"], "Sum")
    first, second = found["c.json"]
    assert (first["slug"], first["content"], first["tags"]) == ("x-y", "Hi\n", ["a"])
    assert (second["title"], second["content"]) == ("Plain text", "Plain text.")


def test_what_a_feed_says_is_hidden_is_a_draft(tmp_path):
    item = {"url": "https://a.example/b", "content_text": "B", "date_modified": "2024-03-05T10:00:00+01:00"}
    files = {
        "a.atom": old_backup(ENTRY.replace("<title", f"{DRAFT}<title", 1)),
        "b.json": json.dumps(JSON_FEED | {"items": [item | {"visibility": "private"}]}),
        "c.json": json.dumps(JSON_FEED | {"items": [item]}),
    }
    top = write_files(tmp_path, files)
    found = [fields for name in files for fields in (item.fields for item in read(top / name))]
    assert [fields["status"] for fields in found] == ["draft", "draft", "published"]
    assert found[2]["published_at"] == "2024-03-05T09:00:00Z"


def test_a_feed_that_probably_has_only_the_latest_posts_is_reported(tmp_path):
    link = "<link rel='next' href='x'/>"
    feeds = {"one": (ENTRY, False), "ten": (ENTRY * 10, True), "next": (ENTRY + link, True)}
    for name, (entries, is_partial) in feeds.items():
        path = write_files(tmp_path, {f"{name}.atom": ATOM.format(more="", entries=entries)}) / f"{name}.atom"
        with open_sources(path) as sources:
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
        ("a.qmd", "A", "rename it to .md"),
    ],
)
def test_other_formats_are_named_with_a_way(tmp_path, name, data, way):
    top = write_files(tmp_path, {name: data})
    (failure,) = read(top / name)
    assert way in failure.reason
    with open_sources(top) as sources:
        assert (len(sources), [way in line for line in sources.advice()]) == (0, [True])


@pytest.mark.parametrize(
    "text",
    ["<feed><entry/></feed>", "<rss><channel><item/></channel></rss>", '{"version": "jsonfeed.org", "items": [1]}'],
)
def test_a_broken_feed_does_no_harm(tmp_path, text):
    name = "a.json" if text[0] == "{" else "a.xml"
    found = read(write_files(tmp_path, {name: text}) / name)
    assert len(found) == 1


def test_an_id_with_a_control_character_is_no_file_name(tmp_path):
    feed = '{"version": "https://jsonfeed.org/version/1.1", "items": [{"title": "a\\u0000b", "content_text": "x"}]}'
    with open_sources(write_files(tmp_path, {"feed.json": feed}) / "feed.json") as sources:
        assert len([*sources]) == 1


FEED = """<rss version="2.0"><channel><item><title>A</title><link>https://a.example/a</link>
<pubDate>{}</pubDate><description>Text{}</description></item></channel></rss>"""


def test_a_post_of_an_export_whose_date_cannot_be_read_is_a_draft(tmp_path):
    for number, text in enumerate(("30 Feb 2024", "0000-01-01", "yesterday")):
        (file := tmp_path / f"{number}.xml").write_text(FEED.format(text, ""))
        [item] = read(file)
        assert (item.fields["status"], item.notes[Note.UNREAD_DATES]) == ("draft", (None, text))
    (file := tmp_path / "none.xml").write_text(FEED.format("", ""))
    assert read(file)[0].fields["status"] == "published"


def test_an_export_with_text_for_members_only_is_a_draft(tmp_path):
    marks = "[members_only]", "&lt;!-- wp:jetpack/paywall /--&gt;", "&lt;!--members-only--&gt;"
    for number, mark in enumerate(marks):
        (file := tmp_path / f"{number}.xml").write_text(FEED.format("2024-03-05", mark))
        [item] = read(file)
        assert (item.fields["status"], item.notes[Note.HIDDEN][1][:7]) == ("draft", "paywall"), mark


def test_blogger_and_ghost_publish_nothing_that_is_scheduled_without_a_date_or_only_for_mail(tmp_path):
    entry = "<entry><blogger:type>POST</blogger:type><blogger:status>SCHEDULED</blogger:status><title>A</title>"
    feed = f"<feed xmlns='http://www.w3.org/2005/Atom' xmlns:blogger='http://schemas.google.com/blogger/2018'>{entry}"
    (tmp_path / "feed.atom").write_text(f"{feed}<content>Text</content><published>soon</published></entry></feed>")
    row = {"id": "1", "title": "A", "slug": "a", "html": "<p>A</p>", "status": "scheduled"}
    row["published_at"] = "2035-03-05T10:00:00.000Z"
    data = {"posts": [row], "posts_meta": [{"post_id": "1", "email_only": 1}]}
    (tmp_path / "ghost.json").write_text(json.dumps({"db": [{"data": data}]}))
    assert [read(tmp_path / name)[0].fields["status"] for name in ("feed.atom", "ghost.json")] == ["draft", "draft"]
