"""The supported programs: their names, headers and URLs. The rules of one program do not apply to another."""

from blogapi.config import zone_named
from blogapi.wings.transfer.items import Item, Note
from tests.blogs import open_sources, read, write_files
from tests.cases import cases

HEXO = "title: x\nnew_post_name: :title.md\ntimezone: Asia/Tokyo\npermalink: :year/:title/\n"
DATED = {"a": ("published", "2020-01-02T00:00:00Z", None)}
# The files of a folder, and of each post: slug, status, date, tags
BLOGS = {
    "Hashnode": (
        {"c.md": "---\ntitle: A\ndatePublished: Tue Mar 05 2024 18:22:41 GMT+0000\ncuid: c\nslug: a\n---\nB"},
        {"a": ("published", "2024-03-05T18:22:41Z", None)},
    ),
    "Hexo": (
        {"_config.yml": HEXO,
         "source/_posts/a.md": "title: A\ndate: 2021-05-04 07:30:00\ntags: big cats\n---\nB",
         "source/_posts/b.md": "---\ntitle: B\ndate: 2021-05-05\ncategories: [[x, y], [z]]\n---\nB"},
        {"a": ("published", "2021-05-03T22:30:00Z", ["big cats"]),
         "b": ("published", "2021-05-04T15:00:00Z", ["x", "y", "z"])},
    ),
    "Zola": (
        {"config.toml": 'base_url = "x"', "content/2024-03-05_a.md": '+++\n[taxonomies]\ntags = ["b"]\n+++\nA'},
        {"a": ("published", "2024-03-05T00:00:00Z", ["b"])},
    ),
    "Zola, in two languages": (
        {"config.toml": 'base_url = "x"\ndefault_language = "de"\n[languages.fr]\n',
         "content/2024-03-05_a.fr.md": "A",
         "content/b.de.md": "B",
         "content/c.js.md": "C"},
        {"a": ("published", "2024-03-05T00:00:00Z", None), "b": (None, None, None), "c-js": (None, None, None)},
    ),
    "Hugo": (
        {"config/_default/hugo.toml": 'baseURL = "x"',
         "config/_default/languages.yaml": "pt-br:\n  weight: 1\nfr: {}",
         "content/posts/a.en.md": "A",
         "content/posts/b/index.pt-BR.md": "B",
         "content/posts/c.md": "C",
         "content/posts/c.fr.md": "C",
         "content/posts/node.js/index.fr.md": "D",
         "content/posts/e.de.md": "E"},
        dict.fromkeys(("a", "b", "c", "fr-c", "node-js", "e-de"), (None, None, None)),
    ),
    "Hugo, in JSON": (
        {"hugo.toml": 'baseURL = "x"', "content/a.md": '{"title": "A", "date": "2020-01-02", "tags": ["b"]}\n\nA'},
        {"a": ("published", "2020-01-02T00:00:00Z", ["b"])},
    ),
    "VuePress": (
        {"docs/.vuepress/config.js": "", "docs/_posts/2020-01-02-a.md": "---\ntags: big cats\n---\n# A"},
        {"a": ("published", "2020-01-02T00:00:00Z", ["big cats"])},
    ),
    "Docusaurus": (
        {"blog/2021/05/04/a.md": "# A", "blog/2021-05-05-b/index.mdx": "# B", "blog/2021-05/06-c.md": "# C"},
        {"a": ("published", "2021-05-04T00:00:00Z", None),
         "b": ("published", "2021-05-05T00:00:00Z", None),
         "c": ("published", "2021-05-06T00:00:00Z", None)},
    ),
    "Middleman": ({"config.rb": "", "source/2020-01-02-a.html.markdown": "---\ntitle: A\n---\nA"}, DATED),
    "MkDocs": ({"docs/a.md": "---\ndate:\n  created: 2020-01-02\n  updated: 2024-01-01\n---\n# A"}, DATED),
    "Nikola": (
        {"a.md": "B", "a.meta": ".. title: A\n.. slug: b\n.. date: 2013-05-04 09:00:00 UTC+02:00\n.. tags: x, y\n"},
        {"b": ("published", "2013-05-04T07:00:00Z", ["x", "y"])},
    ),
    "Pelican": (
        {"a.md": "Author: x\r\nTitle: A\r\nDate: 2013-05-04 9:00\r\nTags: x,\r\n y\r\n\r\nB", "b.md": "Title: B\n\nB"},
        {"a": ("published", "2013-05-04T09:00:00Z", ["x", "y"]), "b": (None, None, None)},
    ),
    "Logseq": (
        {"a.md": "title:: A\ndate:: [[May 4th, 2013]]\ntags:: [[x]], #y\n\n- B",
         "b.md": "- date:: [[May 4th, 2013]]\n  public:: false\n- B"},
        {"a": ("published", "2013-05-04T00:00:00Z", ["x", "y"]),
         "b": ("draft", "2013-05-04T00:00:00Z", None)},
    ),
    "Notion": (
        {
            f"A b {'0a' * 16}.md": "# A b\n\nCreated time: March 5, 2024 6:22 PM\nLast edited time: A\nTags: x, y\n"
            "Status: Published\n\nB"
        },
        {"a-b": ("published", "2024-03-05T18:22:00Z", ["x", "y"])},
    ),
    "Obsidian": (
        {"A.md": '---\ncreated: 2024-03-05T18:22\npublish: true\ntags: ["#x", "[[y]]"]\n---\nB'},
        {"a": ("published", "2024-03-05T18:22:00Z", ["x", "y"])},
    ),
    "ABlog": (
        {"conf.py": "blog_baseurl = 'x'",
         "a.md": "# A\n\n```{post} Mar 5, 2024\n:tags: x\n:category: y\n:excerpt: 2\n```\n",
         "b.md": ":::{post}\n:::\n\n# B"},
        {"a": ("published", "2024-03-05T00:00:00Z", ["x", "y"]), "b": (None, None, None)},
    ),
    "Nuxt": ({"nuxt.config.ts": "", "content/blog/6.a.md": "---\ndate: 2020-01-02\n---\nA"}, DATED),
    "Grav": (
        {"user/pages/01.blog/a/item.md": "---\ndate: 2020-01-02\ntaxonomy: {category: blog, tag: [x, y]}\n---\nA"},
        {"a": ("published", "2020-01-02T00:00:00Z", ["x", "y", "blog"])},
    ),
    "Grav, only `user`": (
        {"config/site.yaml": "taxonomies: [tag]", "pages/01.blog/a/docs.md": "---\ndate: 2020-01-02\n---\nA"}, DATED
    ),
    "Harp": (
        {"harp.json": "{}",
         "a/_data.json": '{"a": {"title": "A", "date": "2020-01-02"}, "b": {"title": "B", "draft": true}}',
         "a/a.md": "A",
         "a/b.md": "B"},
        {"a": ("published", "2020-01-02T00:00:00Z", None), "b": ("draft", None, None)},
    ),
    "Blot": (
        {"[bread] A.md": "Date: 2020-01-02\n\n# A"},
        {"a": ("published", "2020-01-02T00:00:00Z", ["bread"])},
    ),
    "PieCrust": (
        {"2020-01-02_a.md": "---\ntime: 10:15:00\n---\nA"},
        {"a": ("published", "2020-01-02T10:15:00Z", None)},
    ),
    "Dendron": (
        {"a.md": "---\ntitle: A\ndesc: b\nupdated: 1\ncreated: 1577923200000\nstatus: published\n---\nB"}, DATED
    ),
    "nanoc": ({"a.md": "---\nkind: article\ntitle: A\ncreated_at: 2020-01-02\n---\nB"}, DATED),
    "Bear": (
        {"a.md": "---\ntitle: A\npublished_date: 2020-01-02 10:00\nis_page: false\nall_tags: '[\"x\", \"y z\"]'\n---\n"
         "B"},
        {"a": ("published", "2020-01-02T10:00:00Z", ["x", "y z"])},
    ),
    "Zenn": (
        {"a.md": '---\ntitle: A\nemoji: x\ntopics: ["b"]\npublished: true\npublished_at: 2020-01-02 09:00\n---\nB'},
        {"a": ("published", "2020-01-02T00:00:00Z", ["b"])},
    ),
}  # fmt: skip
RECOGNIZED = {
    "Hexo": "Hexo, by _config.yml",
    "Zola": "Zola, by config.toml",
    "Hashnode": "Hashnode, by the names in front matter",
    "Pelican": "Pelican or MultiMarkdown, by the names in front matter",
}


def test_the_posts_of_each_program_are_recognized_and_have_their_dates_and_tags(tmp_path):
    for name, (files, expected) in BLOGS.items():
        with open_sources(write_files(tmp_path / name, files)) as sources:
            found = [*sources]
            recognized = ", ".join(sources.recognized).replace(f"{tmp_path}/{name}/", "")
            assert recognized == RECOGNIZED.get(name, recognized), name
        assert all(isinstance(item, Item) for item in found), (name, found)
        contents = [item.fields["content"].strip("#- \n") for item in found]  # without headers
        assert name == "Notion" or {*contents} <= {*"ABCDE"}, (name, contents)
        names = ("status", "published_at", "tags")
        posts = {item.fields["slug"]: tuple(map(item.fields.get, names)) for item in found}
        assert posts == expected, name


def test_addresses_follow_the_rules_of_the_program(tmp_path):
    post = "---\ntitle: A\ndate: 2020-01-02\n---\nA"
    sites = {
        "hexo": ({"_config.yml": HEXO, "source/_posts/a.md": post}, "/2020/a/"),
        "bridgetown": ({"bridgetown.config.yml": "permalink: simple", "src/_posts/2020-01-02-a.md": post}, "/a/"),
        "jekyll": ({"_config.yml": "", "src/_posts/2020-01-02-a.md": post}, "/src/2020/01/02/a.html"),
        "octopress": ({"source/_posts/2020-01-02-a.md": post}, None),
        "hugo": ({"hugo.toml": "baseURL = ''\npermalink = '/:year/'", "content/a.md": post}, None),
    }
    for name, (files, path) in sites.items():
        (item,) = read(write_files(tmp_path / name, files))
        assert next(iter(item.old_paths), None) == path, name


def test_a_date_that_is_not_read_is_always_reported(tmp_path):
    files = {
        "a.md": "---\ntitle: A\ncreated: 2020-01-02\n---\nA",
        "b.md": "---\ntitle: B\nwritten: May 4, 2020\n---\nB",
        "c.md": "---\ntitle: C\ndate: Last Modified\n---\nC",
        "2020/05/d.md": "# D",
        "notes/e.md": "# E",
        "f/f.json": '{"date": "2020-01-02"}',
        "f/e2.md": "# E",
        "g.md": "---\ntitle: G\nposted_at: 1577836800\n---\nG",
        "i.md": "---\ntitle: I\ndate created: Tuesday, March 5th 2024, 6:22:41 pm\n---\nI",
        "j.md": "---\ntitle: J\nposted: 05/03/2024\n---\nJ",
        "k.md": "# K\n\n**Published**: 2024-03-05\nWhere: here\n\nK",
        "h.md": "---\ntitle: H\ncreated: 2020-01-02\ndraft: true\n---\nH",
    }
    top = write_files(tmp_path, files)
    noted = {item.fields["slug"]: item.notes.get("other dates") for item in read(top)}
    assert noted == {
        "a": (3, "created"),
        "b": (3, "written"),
        "c": (3, "date"),
        "d": (None, "2020/05 in its path"),
        "e": None,
        "e2": (None, "date in f.json"),
        "g": (3, "posted_at"),
        "i": (3, "date created"),
        "j": (3, "posted"),
        "k": (None, "Published in its text"),
        "h": None,
    }
    dated = {item.fields["slug"]: item.fields.get("published_at") for item in read(top, date_from="created")}
    assert (dated["a"], dated["b"], dated["h"]) == ("2020-01-02T00:00:00Z", None, "2020-01-02T00:00:00Z")


def test_a_configuration_of_sphinx_is_not_one_of_nikola(tmp_path):
    files = {"conf.py": "blog_title = 'Rye'\n", "a.md": "# Rye\n\n```{post} 2024-03-05\n```\n"}
    (item,) = read(write_files(tmp_path, files), publish=False)
    assert (item.file.program.name, item.fields.get("status")) == ("ABlog", None)
    assert Note.NOT_PUBLISHED in item.notes
    files["a.md"] = "---\nkernelspec: x\n---\n" + files["a.md"]
    (item,) = read(write_files(tmp_path, files), publish=False)
    assert item.notes[Note.OTHER_DATES] == (None, "{post} in its text")


REFUSED = {
    '{:title "A"\n :draft? true}\nText': "front matter in EDN cannot be read",
    '%{\n  title: "A"\n}\n---\nText': "front matter in Elixir cannot be read",
    "    Title: A\n    Date: 2024-01-01\n\nText": "this header cannot be read",
    '@def title = "A"\nText': "this header cannot be read",
    "<!--t A t-->\nText": "this header cannot be read",
    ";;;;;\ntitle: A\n;;;;;\nText": "front matter must be YAML or JSON",
    "###\ntitle: A\n###\nText": "front matter must be YAML or JSON",
    '"title": "A"\n;;;\nWords.': "front matter must be YAML or JSON between lines of ---, or TOML between",
    ';;;\n"title": "A"\n;;;\nWords.': "front matter must be YAML or JSON between lines of ---, or TOML between",
    "---js\n{ draft: true }\n---\nA": "front matter in JavaScript cannot be read: write it as YAML",
    "---coffee\ndraft: true\n---\nA": "front matter in `coffee`",
    "---ruby\nfront_matter do\n  draft true\nend\n---\nA": "front matter in `ruby`",
    "```ruby\nfront_matter do\n  draft true\nend\n```\nA": "front matter in Ruby",
    "~~~<%\n{ draft: true }\n~~~\nA": "front matter in Ruby",
    "import A from 'a'\n\nexport const metadata = {\n  draft: true,\n}\n\nA": "metadata in JavaScript",
    "import {\n  B,\n} from 'b'\n\nexport const article = {\n  title: 'A',\n}\n\nText.": "metadata in JavaScript",
    "AUTHOR: me\nTITLE: A\n-----\nBODY:\nA": "an export from Movable Type",
    "標題: x\n\nText.": "these look like headers",
    "Autor: A\nDatum: 2024-01-02\n\nText.": "these look like headers",
    "#+TITLE: A\n\nText.": "headers of Org, Pandoc or ikiwiki",
    "% A\n% B\n\nText.": "headers of Org, Pandoc or ikiwiki",
    '[[!meta title="A"]]\nText.': "headers of Org, Pandoc or ikiwiki",
    "---\rtitle: A\r---\rText.": "line breaks must be LF",
}
TEXTS = ("Note: a text.\n\nText.", "\nPeople: 4\nTime: 1 h\n\nText.", "See: a\nand more.\n\nText.")


def test_unsupported_headers_are_refused_and_a_paragraph_with_a_colon_is_text(write):
    for text, reason in REFUSED.items():
        (failure,) = read(write({"2020-01-02-a.md": text}))
        assert (failure.line, failure.reason[: len(reason)]) == (1, reason), text
    assert [read(write({"2020-01-02-a.md": text}))[0].fields["content"] for text in TEXTS] == [*TEXTS]


def test_properties_with_any_name_are_read(read_file):
    post = read_file("a.md", "up:: [[Kitchen]]\nrating:: 5\n\nText.")
    assert (post.fields["params"], post.fields["content"]) == ({"up": "[[Kitchen]]", "rating": 5}, "Text.")


@cases(
    ("tags", "expected"),
    ("[{name: a, slug: b}, {title: c}]", ["a", "c"]),
    ("'#a #b'", ["a", "b"]),
    ("[[a, [{label: b}]], c]", ["a", "b", "c"]),
    (f"[{', '.join(f't{n % 50}' for n in range(51))}]", [f"t{n}" for n in range(50)]),  # repeated ones count once
)
def test_tags_have_many_forms(item, tags, expected):
    assert item(f"title: A\ntags: {tags}").fields["tags"] == expected


def test_archetypes_of_hugo_are_not_content(write):
    files = {"hugo.toml": "baseURL = 'x'", "archetypes/a.md": "+++\ndate = {{ .Date }}\n+++\n", "content/a.md": "A"}
    with open_sources(write(files)) as sources:
        assert [item.fields["slug"] for item in sources] == ["a"]
        assert [*sources.unread] == ["folder called archetypes"]
    assert [item.fields["slug"] for item in read(write({"notes/archetypes/b.md": "B"}) / "notes")] == ["b"]


def test_a_title_that_ends_with_a_line_break_is_not_reported(item):
    found = item("title: |\n  A\ntags: [b]")
    assert (found.fields["title"], found.notes) == ("A", {})


@cases(
    "text",
    [
        *("a: b\n" * 20_000, "- a: b\n" * 10_000, "# x\n\n" + "A: b\n" * 20_000, " a\n" * 30_000),
        *("import 'a'\n" * 10_000, "import a" * 20_000, "export const a = {" + " a" * 50_000),
        '{"a": "' + "b" * 200_000,
    ],
)
def test_headers_that_never_end_are_read_in_linear_time(write, text):
    assert len(read(write({"a.md": text + "!"}), zone=zone_named("UTC"))) == 1
