"""Exports of Medium and Substack, and exports that are too large."""

import os
import re

from blogapi.wings.transfer.items import Failure
from tests.blogs import open_sources, read, write_files
from tests.cases import cases
from tests.timing import time_limit
from tests.transfer.conftest import MEDIUM, SUBSTACK, WXR_HEAD


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
        assert sources.unread == {"file in .html": [f"{tmp_path}/profile/about.html"]}
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


def test_other_files_in_html_and_csv_are_not_posts(tmp_path):
    top = write_files(tmp_path, {"a.html": "<p>A", "a.csv": "a,b\n1,2\n", "posts.csv": "\0"})
    reasons = [failure.reason for name in ("a.html", "a.csv", "posts.csv") for failure in read(top / name)]
    assert reasons[0] == "not read, because this is text that `pandoc -t gfm` converts to Markdown"
    assert reasons[1:] == ["not an export from Substack"] * 2


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
