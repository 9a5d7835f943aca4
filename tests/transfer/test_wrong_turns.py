"""What programs write in their own way, and came out wrong: dates, names, headers, posts without text."""

import json

from blogapi.wings.transfer.items import Failure, Note
from tests.blogs import read, write_files

POST = "---\ntitle: A\ndate: 2024-03-05\n---\nText"


def read_one(folder, files, **options):
    [item] = read(write_files(folder, files), **options)
    return item


def test_times_are_in_the_zone_that_a_configuration_in_python_assigns_plainly(tmp_path):
    zones = {
        "TIMEZONE = 'US/Pacific'": ("2024-03-05T16:01:00Z", False),
        'TIMEZONE = "Europe/Berlin"  # where we live': ("2024-03-05T07:01:00Z", False),
        "TIMEZONE = os.environ['TZ']": ("2024-03-05T08:01:00Z", True),
        "# TIMEZONE = 'US/Pacific'": ("2024-03-05T08:01:00Z", False),
    }
    for number, (line, expected) in enumerate(zones.items()):
        files = {
            "pelicanconf.py": f"SITENAME = 'Rye'\n{line}\n",
            "content/a.md": "Title: A\nDate: 2024-03-05 08:01\n\nA",
        }
        item = read_one(tmp_path / str(number), files)
        assert (item.fields["published_at"], Note.TIME_ZONES in item.notes) == expected, line


def test_names_of_files_and_data_beside_them_are_read_as_their_programs_do(tmp_path):
    nuxt = read_one(tmp_path / "nuxt", {"nuxt.config.ts": "", "content/blog/6.rye.md": POST})
    assert nuxt.fields["slug"] == "rye"
    taxonomy = POST.replace("date:", "taxonomy: {category: blog, tag: [a, b]}\ndate:")
    grav = read_one(tmp_path / "grav", {"user/pages/01.blog/rye/item.md": taxonomy})
    assert (grav.fields["slug"], grav.fields["tags"], grav.fields["status"]) == ("rye", ["a", "b", "blog"], "published")
    files = {"config/site.yaml": "taxonomies: [tag]", "pages/01.blog/rye/docs.md": taxonomy}
    grav = read_one(tmp_path / "user", files, publish=False)
    assert (grav.fields["slug"], grav.fields["status"]) == ("rye", "published")
    data = {"rye": {"title": "Rye loaf", "date": "2024-03-05"}, "oats": {"title": "Oats", "draft": True}}
    files = {"harp.json": "{}", "a/_data.json": json.dumps(data), "a/rye.md": "Text", "a/oats.md": "Text"}
    harp = read(write_files(tmp_path / "harp", files))
    assert [(post.fields["title"], post.fields["status"]) for post in harp] == [
        ("Rye loaf", "published"),
        ("Oats", "draft"),
    ]
    blot = read_one(tmp_path / "blot", {"[bread] Rye.md": "Date: 2024-03-05\n\n# Rye\n\nText"})
    expected = "rye", ["bread"], "2024-03-05T00:00:00Z"
    assert tuple(map(blot.fields.get, ("slug", "tags", "published_at"))) == expected
    piecrust = read_one(tmp_path / "piecrust", {"2024-03-05_rye.md": "---\ntime: 10:15:00\n---\nText"})
    assert piecrust.fields["published_at"] == "2024-03-05T10:15:00Z"


def test_a_configuration_of_sphinx_is_not_one_of_nikola(tmp_path):
    files = {"conf.py": "blog_title = 'Rye'\n", "a.md": "# Rye\n\n```{post} 2024-03-05\n```\n"}
    item = read_one(tmp_path, files, publish=False)
    assert (item.file.program.name, item.fields.get("status")) == ("ABlog", None)
    assert Note.NOT_PUBLISHED in item.notes
    item = read_one(tmp_path, files | {"a.md": "---\nkernelspec: x\n---\n" + files["a.md"]}, publish=False)
    assert item.notes[Note.OTHER_DATES] == (None, "{post} in its text")


def test_headers_that_are_not_read_are_refused_with_the_reason(tmp_path):
    headers = {
        '{:title "A"\n :draft? true}\n': "front matter in EDN cannot be read",
        '%{\n  title: "A"\n}\n---\n': "front matter in Elixir cannot be read",
        "    Title: A\n    Date: 2024-01-01\n\n": "this header cannot be read",
        '@def title = "A"\n': "this header cannot be read",
        "<!--t A t-->\n": "this header cannot be read",
        ";;;;;\ntitle: A\n;;;;;\n": "front matter must be YAML or JSON",
        "###\ntitle: A\n###\n": "front matter must be YAML or JSON",
    }
    for number, (header, reason) in enumerate(headers.items()):
        failure = read_one(tmp_path / str(number), {"a.md": f"{header}Text"})
        assert isinstance(failure, Failure), header
        assert (failure.line, failure.reason[: len(reason)]) == (1, reason), header


def test_a_post_without_text_has_its_link_or_list_as_text(tmp_path):
    texts = {
        "external: https://example.org/a": "<https://example.org/a>",
        "books: [{name: X, url: 'https://x.example/'}, Y]": "* X <https://x.example/>\n* Y",
        "description: Few words": "Few words",
        "image: https://example.org/a.png": "![](https://example.org/a.png)",
        "canonical_url: https://example.org/\naliases: [/a/]\nlayout: post": "",
    }
    for number, (line, text) in enumerate(texts.items()):
        item = read_one(tmp_path / str(number), {"_posts/2024-03-05-a.md": f"---\ntitle: A\n{line}\n---\n"})
        assert (item.fields["content"], Note.NO_TEXT in item.notes) == (text, bool(text)), line


def test_a_cover_that_is_only_switched_on_is_not_missing(tmp_path):
    item = read_one(tmp_path, {"a.md": POST.replace("date:", "image: true\ndate:")})
    assert (item.fields["params"], Note.COVERS in item.notes) == ({"image": True}, False)


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
