"""What sites and folders say about their posts: which configurations apply, and what hides a post."""

import subprocess
import sys
from datetime import UTC

import pytest

from blogapi.markdown.files import render
from blogapi.markdown.programs import ANY
from blogapi.wings.transfer.sites import Site, bound_of, site_of
from tests.blogs import open_sources, read, run_without_rights, write_files

TOKYO = "timezone: Asia/Tokyo\n"
POST = "---\ndate: 2020-07-02 08:00\n---\nA"
HERE, THERE = "2020-07-01T23:00:00Z", "2020-07-02T08:00:00Z"


def test_a_configuration_applies_in_the_given_folder_or_in_its_site(tmp_path):
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


def test_nothing_above_the_given_folder_is_read(tmp_path):
    for name in ("_config.yml", "hugo.toml", "config.yaml", "config/_default/hugo.json"):
        write_files(tmp_path, {name: "timezone: Asia/Tokyo"})
    hiding = {"blog.json": '{"draft": true}', "_data.yml": "draft: true"}
    top = write_files(tmp_path / "home", hiding | {"blog/a.md": POST}) / "blog"
    assert site_of(top, bound_of(top), UTC) == Site(ANY, UTC)
    assert statuses(top) == {"a": "published"}


def test_a_configuration_behind_a_link_out_of_the_folder_is_not_read(tmp_path):
    outside = write_files(tmp_path / "outside", {"_config.yml": TOKYO}) / "_config.yml"
    top = write_files(tmp_path / "site", {"a.md": POST})
    (top / "_config.yml").symlink_to(outside)
    site = site_of(top, bound_of(top), UTC)
    assert (site.zone, site.values) == (UTC, None)
    assert site.unread == f"{top}/_config.yml (not a regular file in the given folders)"


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
from blogapi.markdown.files import MarkdownError, parse
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
    assert [*sources.unread_settings] == [f"{tmp_path}/_config.yml (must not be nested more than 64 levels deep)"]


# None that they hide is published, and no password is stored

DATED = "---\ntitle: A\ndate: 2020-01-02\n---\nA"
DRAFT = "---\ndraft: true\n---\n"
HUGO = "cascade: [{_target: {path: '/posts/diary/**'}, draft: true}]\nbaseURL: x"
JEKYLL = "defaults: [{scope: {path: %s, type: %s}, values: {published: false}}]"
# Files of a site, and the posts that are public in it
HIDDEN = {
    "Eleventy": {"posts/posts.json": '{\n\t"draft": true\n}'},
    "Eleventy, above": {"blog.11tydata.json": '{"eleventyExcludeFromCollections": true}'},
    "Eleventy, in JavaScript": {"posts/posts.11tydata.js": "module.exports = { layout: 'post', draft: true };"},
    "Eleventy, for one post": {"posts/a.json": '{"permalink": false}'},
    "Lume": {"posts/_data.yml": "draft: true"},
    "Bridgetown": {"posts/_defaults.yml": "published: false"},
    "Zola": {"posts/_index.md": "+++\ndraft = true\n+++\n"},
    "Zola, above": {"_index.md": "+++\ndraft = true\n+++\n"},
    "Zola, the post itself": {"posts/a.md": "+++\ndate = 2020-01-02\nrender = false\n+++\nA"},
    "Hugo": {"posts/_index.md": "---\ncascade:\n  build: {render: never}\n---\n"},
    "Hugo, of several languages": {"posts/_index.de.md": DRAFT},
    "Hugo, in its configuration": {"hugo.toml": "baseURL = 'x'\n[[cascade]]\ndraft = true\n"},
    "Hugo, what a cascade names": {"hugo.yaml": HUGO, "posts/a.md": "", "posts/diary/b.md": DATED},
    "Jekyll": {"_config.yml": JEKYLL % ("''", "posts")},
    "Jekyll, by path": {"_config.yml": JEKYLL % ("posts/*", "''")},
    "Jekyll, a collection": {"_config.yml": "collections: {notes: {}}", "posts/a.md": "", "_notes/b.md": DATED},
    "Jekyll, a list of them": {"_config.yml": "collections: [notes]", "posts/a.md": "", "_notes/b.md": DATED},
    "Hexo": {"_config.yml": "encrypt: {tags: [{name: A, password: x}]}", "posts/a.md": DATED.replace("title", "tags")},
    "MkDocs": {"posts/.meta.yml": "draft: true"},
    "Quarto": {"posts/_metadata.yml": "draft: true"},
    "a whole site": {"_config.yml": "private: true"},
    "unreadable": {"posts/posts.json": "{"},
    "large": {"posts/posts.yaml": f"a: {'x' * 300_000}"},
    "Nuxt": {"posts/a.md": "", "posts/b.draft.md": DATED},
    "Jekyll and Astro": {"posts/a.md": "", "posts/_b.md": DATED},
    "Jekyll, in no collection": {"_config.yml": "collections: [notes]", "posts/a.md": "", "_trash/b.md": DATED},
    "Hexo, discarded": {"_config.yml": "new_post_name: a", "posts/a.md": "", "source/_discarded/b.md": DATED},
    "Blot": {"posts/a.md": "", "posts/[Draft] b.md": DATED},
    "Jekyll, excluded": {"_config.yml": "exclude: [posts]"},
    "Hugo, ignored": {"hugo.toml": "baseURL = 'x'\nignoreFiles = ['posts/.*\\.md$']"},
    "Hugo, in a mount": {"hugo.yaml": "module: {mounts: [{source: content, excludeFiles: [posts/*]}]}"},
    "Hugo, in a newer mount": {"hugo.yaml": "module: {mounts: [{source: x, files: ['! posts/**', '**']}]}"},
    "Hugo, a disabled language": {
        "hugo.toml": "[languages.fr]\ndisabled = true",
        "config/_default/languages.yaml": "de: {disabled: true}",
        "posts/a.md": "",
        "posts/b.fr.md": DATED,
        "posts/c.de.md": DATED,
    },
    "Sphinx, excluded": {"conf.py": "blog_path = 'x'\nexclude_patterns = [\n  '_build',\n  'posts/*',\n]"},
    "Zola, ignored": {"config.toml": "base_url = 'x'\nignored_content = ['*a.md']"},
    "Eleventy, ignored": {".eleventyignore": "posts/"},
    "git, ignored": {".gitignore": "# not public\n/posts/*\n!b.md"},
    "Eleventy, in its script": {"eleventy.config.js": "c.ignores.add('posts/**')"},
    "MkDocs, drafts": {"mkdocs.yml": "draft_docs: |\n  posts/"},
    "Pelican, excluded": {"pelicanconf.py": "ARTICLE_EXCLUDES = ['posts']"},
    "Pelican, by default": {"pelicanconf.py": "DEFAULT_METADATA = {\n  'status': 'draft',\n}"},
    "Hexo, ignored": {"_config.yml": "new_post_name: a\nignore: ['**/posts']"},
    "Quarto, not rendered": {"_quarto.yml": "project: {render: ['*.md', '!posts/']}"},
    "Lume, ignored": {"_config.ts": "site.ignore('README.md', 'posts')"},
    "Gatsby, ignored": {"gatsby-config.js": "options: { path: x, ignore: [`**/posts/*`] }"},
    "Middleman, ignored": {"config.rb": "ignore '/blog/posts/*'\nignore 'posts/*'"},
    "VitePress, excluded": {".vitepress/config.ts": "export default { srcExclude: ['posts/**'] }"},
    "Obsidian, excluded": {".obsidian/app.json": '{"userIgnoreFilters": ["posts/"]}'},
    "Quartz, ignored": {"quartz.config.ts": 'const c = { ignorePatterns: ["posts"] }'},
    "Quartz, not chosen": {"quartz.config.ts": "filters: [Plugin.ExplicitPublish()]"},
    "called a draft": {"posts/a.md": "", "posts/draft-b.md": DATED},
    "private folder": {"posts/a.md": "", "Private/b.md": DATED},
}  # fmt: skip
SHOWN = {
    "Hugo, for others": {"hugo.yaml": HUGO},
    "Hugo, another language disabled": {"hugo.toml": "[languages.fr]\ndisabled = true\n[languages.de]\nx = 1"},
    "Zola, for the page of the section": {"_index.md": "+++\nrender = false\n+++\n"},
    "Hugo, for sections": {"_index.md": "---\ncascade: {_target: {kind: section}, draft: true}\n---\n"},
    "Jekyll, for others": {"_config.yml": JEKYLL % ("private", "posts")},
    "Jekyll, for another collection": {"_config.yml": JEKYLL % ("''", "recipes")},
    "Jekyll, a published collection": {
        "_config.yml": "collections: {notes: {output: true}, posts: {permalink: pretty}}",
        "posts/a.md": "---\nslug: b\n---\nB",
        "_notes/a.md": DATED,
    },
    "of the folder, overridden": {
        "posts/posts.json": '{"draft": true}',
        "posts/a.md": DATED.replace("A", "A\ndraft: false", 1),
    },
    "of another folder": {"notes/notes.json": '{"draft": true}'},
    "Jekyll, something else excluded": {"_config.yml": "exclude: [vendor, '*.log', post]"},
    "Pelican, overridden": {
        "pelicanconf.py": "DEFAULT_METADATA = {'status': 'draft'}",
        "posts/a.md": "Title: A\nDate: 2020-01-02\nStatus: published\n\nA",
    },
    "Quarto, rendered": {"_quarto.yml": "project: {render: ['posts/*', '!notes/']}"},
    "git, at the top": {".gitignore": "/a.md\n"},
    "git, but not this": {".gitignore": "posts/*\n!a.md"},
    "a list of data": {"posts/posts.json": "[1, 2]"},
}


def statuses(top, **files):
    return {item.fields["slug"]: item.fields.get("status") for item in read(top, **files)}


def test_no_post_that_its_folder_or_its_site_hides_is_published(tmp_path):
    for number, (name, files) in enumerate(HIDDEN.items()):
        top = write_files(tmp_path / str(number), {"blog/posts/a.md": DATED})
        top = write_files(top, {f"blog/{path}": text for path, text in files.items()}) / "blog"
        assert "published" not in statuses(top).values(), name
    for number, (name, files) in enumerate(SHOWN.items()):
        top = write_files(tmp_path / f"shown {number}", {"posts/a.md": DATED} | files)
        assert statuses(top)["a"] == "published", name


def test_a_hidden_post_is_reported_with_the_word_without_its_password_and_an_ordinary_draft_is_not(item):
    post = item("title: A\npassword: hunter2\nextra: {pwd: x, b: 1}")
    assert (post.fields["status"], post.notes) == ("draft", {"hidden": (3, "password")})
    assert post.fields["params"] == {"extra": {"b": 1}}
    for text in ("draft: true", "published: false", "status: draft"):
        post = item(f"title: A\ndate: 2020-01-02\n{text}")
        assert (post.fields["status"], post.notes) == ("draft", {}), text


def test_a_script_with_data_is_reported(write):
    script = {"posts/posts.11tydata.js": "module.exports = () => ({ draft: isDraft() })", "posts/a.md": DATED}
    with open_sources(write(script)) as sources:
        assert [item.fields["status"] for item in sources] == ["published"]
        assert [*sources.unread_settings] == ["posts.11tydata.js (a script: only its literal values are read)"]


def test_an_export_in_a_folder_of_drafts_is_read_back_unchanged(tmp_path):
    post = {"id": "1", "title": "A", "slug": "a", "status": "published", "content": "A", "tags": []}
    post |= dict.fromkeys(("published_at", "created_at", "updated_at"), "2020-01-02T00:00:00Z")
    post["params"] = {"hidden": True, "b": 1}
    for flat in (False, True):
        top = write_files(tmp_path / "posts", {"posts.json": '{"draft": true}', "a.md": render(post, flat=flat)})
        (item,) = read(top)
        assert item.fields["status"] == "published"
        assert item.fields["params"] | {"lastmod": 0} == post["params"] | {"lastmod": 0}


def test_a_future_publication_date_hides_a_post_under_a_name_that_its_program_does_not_read(tmp_path):
    for number, name in enumerate(("publish_date", "publication-date", "date_published", "post_date", "releaseDate")):
        text = f"---\ntitle: A\nstatus: published\ndate: 2020-01-02\n{name}: 2099-01-02\n---\nA"
        (item,) = read(write_files(tmp_path / str(number), {"hugo.toml": "", "content/posts/a.md": text}))
        assert (item.fields["status"], item.notes) == ("draft", {"hidden": (5, f"{name}: 2099-01-02")}), name
    text = "---\ntitle: A\nstatus: published\npublishDate: 2099-01-02\n---\nA"
    (item,) = read(write_files(tmp_path / "read", {"a.md": text}))
    assert (item.fields["status"], item.notes) == ("scheduled", {})
