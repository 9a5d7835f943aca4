"""The output of `blogapi import`: refusals, the summary, progress."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios

import pytest

from tests.blogs import SAMPLES
from tests.cli.conftest import many, stored
from tests.service import BIN

NOT_FOUND = "--static DIR finds those whose URL begins with a slash; --base-url URL makes all URLs absolute"
NOTED = "---\ntitle: C\ndate: 2020-01-02\ntags: [x, y]\nlayout: z\n---\n<br>C"
# What a report says to do about a note
COVERS = "params keep them; --static DIR finds those whose URL begins with a slash."
SHORTCODES = "only the old site understands them; replace them."
HIDDEN = "something hides them; publish those that are meant to be public."
REDIRECTS = "--redirects FILE lists them."
# The sample blogs, with their number of posts and the summary, where PATH stands for the blog's path
SUMMARIES = {
    "jekyll": (3, f"""\
images: new 0, already stored 0, missing 1
Not imported: 1 folder called _site (PATH/_site).
Not imported: 1 folder called vendor (PATH/vendor).
params: layout 3, image 1, permalink 1
Covers not found in 1 post (PATH/_posts/2019-05-04-rye-starter.markdown:7): {COVERS}
Shortcodes or imports in 1 post (PATH/_posts/2019-05-04-rye-starter.markdown:12): {SHORTCODES}
Old URLs of 1 post (PATH/_posts/2019-05-04-rye-starter.markdown): {REDIRECTS}"""),
    "hugo": (2, """\
Not imported: 1 page of a section.
params: lastmod 1, cover 1, math 1
On other hosts: 1 image (img.example 1)."""),
    "eleventy": (3, f"""\
Not imported: 1 folder called node_modules (PATH/node_modules).
params: permalink 2, eleventyExcludeFromCollections 1
Kept as drafts: 1 post (PATH/content/blog/pattern.md:4 has eleventyExcludeFromCollections: true): {HIDDEN}
Old URLs of 1 post (PATH/content/blog/moved/moved.md): {REDIRECTS}"""),
    "astro": (2, f"""\
images: new 0, already stored 0, missing 1
params: image 1, heroImage 1
On other hosts: 1 image (docs.example 1).
Covers not found in 1 post (PATH/src/content/blog/using-mdx.mdx:5): {COVERS}
Shortcodes or imports in 1 post (PATH/src/content/blog/using-mdx.mdx:8): {SHORTCODES}
HTML in 1 post (PATH/src/content/blog/using-mdx.mdx:10): it is kept as HTML."""),
    "zola": (1, f"""\
params: path 1, extra 1
Old URLs of 1 post (PATH/content/pizza.md): {REDIRECTS}"""),
    "exports/wordpress.xml": (5, f"""\
Not imported: 1 page, 1 attachment and 1 post (trash); --pages imports pages.
params: author 1, format 1
On other hosts: 2 images (crumbs.example 2).
Kept as drafts: 2 posts (PATH (hurotuku) has status: private, PATH (for-friends) has post_password): {HIDDEN}
Shortcodes or imports in 1 post (PATH (salt-time)): {SHORTCODES}
Slugs changed in 1 post (PATH (hurotuku)): --redirects FILE lists the old ones.
Old URLs of 1 post (PATH (salt-time)): {REDIRECTS}"""),
    "exports/ghost.json": (3, f"""\
images: new 0, already stored 0, missing 1
Not imported: 1 page; --pages imports pages.
params: visibility 3, cover_image 1
On other hosts: 1 image (static.example 1).
Kept as drafts: 1 post (PATH (members) has visibility: paid): {HIDDEN}
Covers not found in 1 post (PATH (own-picture)): {COVERS}
HTML in 1 post (PATH (coming-soon)): it is kept as HTML."""),
}  # fmt: skip


@pytest.mark.parametrize("blog", SUMMARIES)
def test_a_blog_is_imported_and_a_second_time_changes_nothing(run, storage, blog):
    made, summary = SUMMARIES[blog]
    status, output, error = run("import", "--publish", SAMPLES / blog)
    recognized = ["Recognized: Jekyll, by the folder _drafts.", "Recognized: Jekyll, by the folder _posts."]
    if blog == "jekyll":
        assert output[:2] == recognized
        del output[:2]
    assert (status, output[0], error) == (0, f"made {made}, changed 0, unchanged 0, refused 0", [])
    assert output[1:] == summary.replace("PATH", str(SAMPLES / blog)).splitlines()
    before = stored(storage)
    assert len(before) == made
    again = [f"made 0, changed 0, unchanged {made}, refused 0", *output[1:]]
    assert [line for line in run("import", "--publish", SAMPLES / blog)[1] if line not in recognized] == again
    assert stored(storage) == before


def test_refused_files_are_reported_with_the_line_and_the_others_are_imported(run, folder, storage):
    top = folder(
        a="# Good\n",
        b="---\ntitle: 'x\n---\n",
        c="---\nslug: c\nslug: d\n---\n# C",
        d="---\ntitle: D\nstatus: scheduled\n---\n",
        e="---\ntitle: E\nstatus: scheduled\n---\nE",
        f="---\ntitle: F\npublished: gone\n---\nF",
        g="---\ntitle: G\n---\n\nG\n\x0c\n",
    )
    status, output, error = run("import", top, top / "none.md", "/nonexistent")
    removed = f"Control characters removed from 1 post ({top}/g.md): such characters cannot be shown."
    assert (status, output) == (1, ["made 2, changed 0, unchanged 0, refused 7", removed])
    refusals = [
        "/nonexistent: no such file or folder",
        f"{top}/b.md:2: not valid YAML: found unexpected end of stream",
        f"{top}/c.md:3: `slug` is given twice",
        f"{top}/d.md: content: must contain a visible character",
        f"{top}/e.md:3: published_at: must be given, and in the future, for a scheduled post",
        f"{top}/f.md:3: `published` must be true or false",
        f"{top}/none.md: no such file or folder",
    ]
    assert sorted(error) == sorted(refusals)
    assert stored(storage).keys() == {"a", "g"}
    assert stored(storage)["g"]["content"] == "G\n\n"


def test_a_post_without_content_in_an_export_is_refused_and_the_others_are_imported(run, tmp_path, storage):
    rows = [{"id": 1, "title": "A", "html": "<p>a</p>"}, {"id": 2, "title": "B", "html": ""}, {"id": 3}]
    path = tmp_path / "ghost.json"
    path.write_text(json.dumps({"data": {"posts": rows}}))
    errors = [f"{path} (b): content: missing", f"{path} (post-3, id 3): content: missing"]
    assert run("import", path) == (1, ["made 1, changed 0, unchanged 0, refused 2"], errors)
    assert list(stored(storage)) == ["a"]


def test_posts_of_an_unknown_program_are_published_only_with_the_option(run, folder, storage):
    top = folder(a="---\ndate: 2020-01-02\n---\nA", b="---\ndate: 2020-01-02\nunlisted: true\n---\nB")
    way = "nothing says they were public; --publish publishes them."
    assert f"Drafts with a date: 1 post ({top}/a.md): {way}" in run("import", top)[1]
    assert {slug: post["status"] for slug, post in stored(storage).items()} == {"a": "draft", "b": "draft"}
    assert run("import", "--publish", top)[1][0] == "made 0, changed 1, unchanged 1, refused 0"
    assert run("import", top)[1][0] == "made 0, changed 0, unchanged 2, refused 0"
    assert {slug: post["status"] for slug, post in stored(storage).items()} == {"a": "published", "b": "draft"}


def test_the_text_of_a_file_cannot_control_the_terminal(run, folder):
    top = folder(a='---\n"\\u202eA": 1\n---\nA', b='---\n"\\e[2J": 1\n"\\e[2J": 2\n---\nA')
    _, output, error = run("import", top)
    assert output[1] == "params: \ufffdA 1"
    assert "\x1b" not in error[0]


def test_a_dry_run_prints_what_would_happen_and_writes_nothing(run, folder, storage, path):
    top = folder(a="# A", b="# B", c=NOTED, d="---\nstatus: scheduled\n---\nD", e="# E")
    run("import", top / "a.md", top / "b.md")
    folder(b="# Changed")
    before, posts_before = path.stat().st_mtime_ns, stored(storage)
    status, output, error = run("import", "--publish", "--dry-run", top)
    assert status == 1
    assert sorted(output) == [
        f"{top}/a.md: would be unchanged: a",
        f"{top}/b.md: would be updated: b",
        f"{top}/c.md: would be created: c; published 2020-01-02T00:00:00Z; tags x, y; params layout; HTML on line 7",
        f"{top}/e.md: would be created: e; draft",
        f"HTML in 1 post ({top}/c.md:7): it is kept as HTML.",
        "params: layout 1",
        "would be made 2, changed 1, unchanged 1, refused 1",
    ]
    assert error == [f"{top}/d.md:2: published_at: must be given, and in the future, for a scheduled post"]
    assert (path.stat().st_mtime_ns, stored(storage)) == (before, posts_before)
    assert run("import", top)[1][0] == "made 2, changed 1, unchanged 1, refused 1"


def test_a_line_every_thousand_files_shows_the_progress(run, folder):
    assert run("import", many(folder, 1001)) == (0, ["made 1001, changed 0, unchanged 0, refused 0"], ["1000 of 1001"])


@pytest.mark.slow
def test_on_a_terminal_there_is_a_progress_bar_and_each_refused_file_has_its_own_line(folder, path):
    top = folder(a="# A", b="---\n")
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 200, 0, 0))
    ended = subprocess.run([BIN / "blogapi", "import", top], stdout=subprocess.PIPE, stderr=terminal, timeout=60)
    os.close(terminal)
    shown = os.read(main, 65536).decode()
    os.close(main)
    assert ended.stdout == b"made 1, changed 0, unchanged 0, refused 1\n"
    assert "100%" in shown
    assert f"\x1b[K{top}/b.md:1: the front matter never ends: the closing line --- is missing\r\n" in shown


def test_the_summary_lists_what_is_left_to_do_with_three_examples(run, tmp_path, folder):
    files = {name: f"---\nslug: {name}_\ntitle: x\nlayout: x\n---\n![a](b.png)" for name in "abcd"}
    top = folder(**files)
    status, output, _ = run("import", top)
    links, slugs = (", ".join(f"{top}/{name}.md:{line}" for name in "abc") for line in (6, 2))
    assert (status, output[0]) == (0, "made 4, changed 0, unchanged 0, refused 0")
    assert output[1:] == [
        "images: new 0, already stored 0, missing 4",
        "params: layout 4",
        f"Images not found in 4 posts ({links}, …): {NOT_FOUND}.",
        f"Slugs changed in 4 posts ({slugs}, …): --redirects FILE lists the old ones.",
    ]
    redirects = tmp_path / "redirects"
    _, output, _ = run("import", "--base-url", "https://a.example", "--redirects", redirects, top)
    assert output[0] == "made 0, changed 4, unchanged 0, refused 0"
    assert not any("not found" in line for line in output)
    assert redirects.read_text() == "/a_ /a\n/b_ /b\n/c_ /c\n/d_ /d\n"


DATED = "_posts/2020-01-02-a.md"
OF_A_COLLECTION = {DATED: "A", "_config.yml": "collections:\n  posts:\n    permalink: /blog/:title/\n"}


@pytest.mark.parametrize(
    ("files", "given", "options", "redirects"),
    [
        ({DATED: "---\ncategories: x y\n---\nA"}, "_posts", [], "/x/y/2020/01/02/a.html /a\n"),
        ({DATED: "A"}, "_posts", ["--permalink", "/:year/:slug/"], "/2020/a/ /a\n"),
        (OF_A_COLLECTION, "_posts", [], "/blog/a/ /a\n"),
        ({"de/about.md": "A", "en/about.md": "B"}, ".", [], "/de/about /de-about\n/en/about /en-about\n"),
    ],
    ids=["Jekyll", "pattern", "collection of Jekyll", "slug of several files"],
)
def test_redirects_from_former_addresses_are_written(run, write, tmp_path, files, given, options, redirects):
    assert run("import", *options, "--redirects", tmp_path / "redirects", write(files) / given)[0] == 0
    assert (tmp_path / "redirects").read_text() == redirects


def test_the_report_says_what_was_recognized_and_what_was_not_read(run, write):
    config = {"_config.yml": "title: x", "hugo.toml": "[", ".git/a.md": "A", ".hidden.md": "B", "a/config.yaml": "- ["}
    top = write(config | {DATED: "A", "a/b.md": "---\ndate: 2020-01-02\n---\nB"})
    assert run("import", "--publish", "--dry-run", top)[1][-7:-3] == [
        f"Recognized: Jekyll, by {top}/_config.yml.",
        f"Not read: {top}/a/config.yaml (not valid YAML).",
        "would be made 2, changed 0, unchanged 0, refused 0",
        "Not imported: 1 file with a name that begins with a dot.",
    ]


def test_redirects_from_names_that_are_not_utf_8_are_percent_encoded(run, tmp_path):
    top = os.fsencode(tmp_path / "blog") + b"/K\xe4se/_posts"
    os.makedirs(top)
    (tmp_path / "blog/_config.yml").write_text("permalink: date\n")
    for name in (b"2020-01-01-a.md", b"2020-01-02-b.md"):
        with open(top + b"/" + name, "wb") as file:
            file.write(b"---\ntitle: A\n---\nB")
    assert run("import", "--redirects", tmp_path / "redirects", tmp_path / "blog")[0] == 0
    assert (tmp_path / "redirects").read_text() == ("/k%E4se/2020/01/01/a.html /a\n/k%E4se/2020/01/02/b.html /b\n")


@pytest.mark.parametrize(
    ("name", "posts", "left_out"),
    [("wordpress.xml", 5, ["Not imported: 1 attachment and 1 post (trash)."]), ("ghost.json", 3, [])],
)
def test_pages_of_an_export_are_imported_on_request(run, name, posts, left_out):
    run("import", SAMPLES / "exports" / name)
    status, output, _ = run("import", "--pages", SAMPLES / "exports" / name)
    assert (status, output[0]) == (0, f"made 1, changed 0, unchanged {posts}, refused 0")
    assert [line for line in output if line.startswith("Not imported")] == left_out


def test_a_published_post_without_a_date_is_reported_with_anything_that_looks_like_one(run, folder):
    top = folder(a="---\nstatus: published\nwritten: 2020-01-02\n---\n# A", b="---\ndraft: false\n---\n# B")
    (line,) = [line for line in run("import", top)[1] if line.startswith("Published at the time of this import:")]
    assert f"2 posts ({top}/a.md:3 has written, {top}/b.md): no date was recognized; add a `date`" in line
    assert run("import", top)[1] == ["made 0, changed 0, unchanged 2, refused 0", "params: written 1"]


def test_a_folder_without_posts_is_an_error_that_lists_its_contents(run, folder):
    top = folder()
    for name in ("a.html", "b.mkdown", "c.rst", "d.textile", "e.xml"):
        (top / name).write_text("A")
    status, printed, errors = run("import", top)
    files = ("a.html", "b.mkdown", "c.rst", "d.textile", "e.xml")
    said = [f"Not imported: 1 file with the extension .{name.partition('.')[2]} ({top}/{name})." for name in files]
    assert (status, printed[1:]) == (1, said)
    assert errors == [
        f"{top}/d.textile: text that `pandoc -t gfm` converts to Markdown",
        f"{top}/b.mkdown: Markdown: give it the extension .md",
        "There is nothing to import: pass Markdown files, a folder that contains some, or an export.",
    ]


def test_names_are_dropped_on_request(run, folder, storage):
    top = folder(a="---\nlayout: x\nmath: true\nauthor: y\nparams: {z: 1}\n---\nA")
    assert run("import", "--drop", "layout, author,z", top)[1][1] == "params: math 1"
    assert stored(storage)["a"]["params"] == {"math": True}


def test_redirects_that_cannot_be_written_stop_the_import_before_it_begins(run, storage, folder, tmp_path):
    status, output, error = run("import", folder(a="A"), "--redirects", tmp_path / "none" / "redirects")
    assert (status, output) == (1, [])
    assert "No such file or directory" in error[-1]
    assert stored(storage) == {}


def test_the_host_of_an_image_can_be_an_ipv6_address(run, folder):
    _, output, _ = run("import", folder(a="![](https://[2001:db8::1]:8080/a.png)"))
    assert "On other hosts: 1 image ([2001:db8::1] 1)." in output
