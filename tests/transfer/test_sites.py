"""The configurations of the sites that posts come from: which of them count, and what makes them unreadable."""

import subprocess
import sys
from datetime import UTC

import pytest

from blogapi.wings.markdown.programs import ANY
from blogapi.wings.transfer.sites import Site, bound_of, site_of
from tests.blogs import open_sources, read, run_without_rights, write_files

TOKYO = "timezone: Asia/Tokyo\n"
POST = "---\ndate: 2020-07-02 08:00\n---\nA"
HERE, THERE = "2020-07-01T23:00:00Z", "2020-07-02T08:00:00Z"


def test_a_configuration_counts_in_the_folder_given_or_in_the_site_it_is_a_part_of(tmp_path):
    cases = {
        "site": HERE,
        "site/_posts": HERE,
        "site/src/content/posts": HERE,
        "site/content/post": HERE,
        "site/posts": THERE,
        "site/blog": THERE,
        "site/notes/2020": THERE,
    }
    for number, (given, published_at) in enumerate(cases.items()):
        top = write_files(tmp_path / str(number), {f"{given}/a.md": POST, "site/_config.yml": TOKYO})
        (item,) = read(top / given)
        assert item.fields["published_at"] == published_at, given
        (item,) = read(top / given / "a.md")
        assert (item.fields["published_at"] == HERE) == (published_at == HERE), f"{given}/a.md"


def test_nothing_above_the_folder_given_is_read(tmp_path):
    for name in ("_config.yml", "hugo.toml", "config.yaml", "config/_default/hugo.json"):
        write_files(tmp_path, {name: "timezone: Asia/Tokyo"})
    top = write_files(tmp_path / "home", {"blog/a.md": POST}) / "blog"
    assert site_of(top, bound_of(top), UTC) == Site(ANY, UTC)


def test_a_configuration_behind_a_link_out_of_the_folder_is_not_read(tmp_path):
    outside = write_files(tmp_path / "outside", {"_config.yml": TOKYO}) / "_config.yml"
    top = write_files(tmp_path / "site", {"a.md": POST})
    (top / "_config.yml").symlink_to(outside)
    site = site_of(top, bound_of(top), UTC)
    assert (site.zone, site.values) == (UTC, None)
    assert site.unread == f"{top}/_config.yml (it is not a file in the given folders)"


@pytest.mark.slow
def test_a_configuration_that_may_not_be_read_is_named_and_the_posts_are_read(tmp_path):
    top = write_files(tmp_path / "site", {"a.md": POST, "config/_default/hugo.toml": "timeZone = 'Asia/Tokyo'"})
    program = (
        "import sys, pathlib, tempfile\nfrom blogapi.wings.transfer.sources import Sources\n"
        "sources = Sources([pathlib.Path(sys.argv[1])], tempfile.TemporaryFile(), 0)\n"
        "found = [item[0] if isinstance(item, tuple) else item.fields['slug'] for item in sources]\n"
        "print(*found, *sources.unread_settings)"
    )
    (top / "config").chmod(0)
    try:
        output = run_without_rights(program, str(top))
    finally:
        (top / "config").chmod(0o755)
    assert output == [f"a {top}/config {top}/config/_default/hugo.toml (Permission denied)"]


# Feeds each parser of files 200,000 brackets and the like. Each must refuse them, and the process must not end.
PARSERS = """
import sys
from pathlib import Path
from blogapi.wings.markdown.files import MarkdownError, parse
from blogapi.wings.transfer import folder as data, platforms, wordpress
from blogapi.wings.transfer.sources import Sources

def refused(read, text):
    try:
        read(text)
    except (ValueError, MarkdownError):
        return
    raise AssertionError(read)

N, top = 200_000, Path(sys.argv[1])
for deep in ("[" * N, '{"a":' * N, "[" * N + "]" * N):
    for read in (data.load_json, platforms._markdown_card):
        refused(read, deep)
    assert wordpress.with_footnotes("", deep) == ""
for deep in ("[" * N, "{a: " * N, "- " * N, "? " * N, "".join(" " * depth + "a:\\n" for depth in range(500))):
    refused(data.load_yaml, deep)
    refused(parse, f"---\\n{deep[:65_000]}\\n---\\nA".encode())
for deep in ("a = " + "[" * N, "a = " + "{a=" * N, ".".join("a" * N) + " = 1"):
    refused(data.load_toml, deep)
    refused(parse, f"+++\\n{deep[:65_000]}\\n+++\\nA".encode())
for name, text, read in (("a.json", "[" * N, platforms.read_ghost), ("a.xml", "<a>" * N, wordpress.read_posts)):
    (top / name).write_text(text)
    refused(lambda path: [*read(path)], top / name)
for name in ("_config.yml", "hugo.yaml", "hugo.toml", "config.json"):
    (top / name).write_text("[" * N)
"""


@pytest.mark.slow
def test_no_parser_of_files_ends_the_process_by_200000_brackets(tmp_path):
    done = subprocess.run([sys.executable, "-c", PARSERS, tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    write_files(tmp_path, {"a.md": POST})
    with open_sources(tmp_path) as sources:
        assert [item.fields["slug"] for item in sources] == ["a"]
    assert [*sources.unread_settings] == [f"{tmp_path}/_config.yml (must be nested at most 64 deep)"]
