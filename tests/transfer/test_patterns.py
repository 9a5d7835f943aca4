"""Patterns from configurations, and regular expressions on texts from outside: what they match, in linear time."""

from functools import partial

import pytest

from blogapi import bounded
from blogapi.markdown import files, front_matter, headers, html
from blogapi.wings.transfer import content, wordpress
from blogapi.wings.transfer.exclusions import MAX_PATTERNS, REGEXES, Patterns
from blogapi.wings.transfer.folder import DataError, load_yaml
from tests.blogs import read, write_files
from tests.timing import is_linear, time_limit


def test_patterns_match_a_path_or_the_end_of_one():
    matches = {
        "attic": ["attic/a.md", "posts/attic/a.md"],
        "*.draft.md": ["a.draft.md", "posts/a.draft.md"],
        "posts/": ["posts/a.md", "content/posts/a.md"],
        "/posts/a.md": ["posts/a.md"],
    }
    for pattern, paths in matches.items():
        for path in paths:
            assert Patterns([pattern]).matches(path), (pattern, path)
        assert not Patterns([pattern]).matches("notes/b.md"), pattern
    for pattern in (r"posts/secret-.*\.md$", "/posts/(?P<name>secret)-", "/posts.secret/", "[[s]ecret"):
        assert Patterns([pattern], REGEXES["ignorefiles"]).matches("posts/secret-a.md"), pattern
        assert not Patterns([pattern], REGEXES["ignorefiles"]).matches("content/posts/a.md"), pattern
    assert Patterns(["/se.ret/"], REGEXES["userignorefilters"]).matches("secret/a.md")
    assert not Patterns(["se.ret", "(notes", "[[a]"], REGEXES["userignorefilters"]).matches("secret/a.md")


def test_the_patterns_of_an_ordinary_gitignore_do_not_hide_everything():
    path = f"content/posts/2016-05-19-{'what-it-is-' * 7}my_first.md"
    assert not Patterns(["report.[0-9]*.[0-9]*.[0-9]*.[0-9]*.json", "**/_*/**", "/posts/"], are_rooted=True).matches(
        path
    )
    assert Patterns(["**/2016*/**", "posts/*my*"], are_rooted=False).matches(path)
    # Patterns that git cannot read match nothing, and stop nothing.
    unreadable = ["!", "b\\", "[z-a]", "b{4294967295}", "(" * 250 + ")" * 249]
    assert not Patterns(unreadable).matches("a.md")
    assert Patterns([*unreadable, "a.md"]).matches("a.md")


def test_patterns_that_could_take_long_or_are_read_otherwise_match_at_once():
    path = f"posts/{'a' * 200}.md"
    with time_limit(1):
        for pattern in (
            *(r"(a+)+b", "(?x)(a+) +b", "b" * 250_000, r"(a|a)*b", r"(?:a{1,9}){1,99}b", ".*.*.*.*.*.*b", "*a" * 20),
            *(r"a?" * 90 + "b", r"[[:upper:]]", r"[^[:alpha:]]", r"\Qb\E", "[", "b{4294967295}", "(" * 250 + ")" * 249),
        ):
            assert Patterns([pattern], REGEXES["ignorefiles"]).matches(path), pattern
        assert Patterns(["b"] * (MAX_PATTERNS + 1)).matches(path)
        for pattern in ("a*b", "b/.*", r"\.Rmd$"):
            assert not Patterns([pattern], REGEXES["ignorefiles"]).matches(path), pattern


def test_a_configuration_whose_aliases_have_no_end_is_refused():
    doubled = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{p: *a{n - 1}, q: *a{n - 1}}}\n" for n in range(1, 40))
    wide = f"a: &a [{'x,' * 60_000}]\nb: [{'*a,' * 20_000}]"
    for text in (doubled, wide, "a: &a {b: *a}", "a: &a [*a]"):
        with pytest.raises(DataError):
            load_yaml(text)
    assert load_yaml("a: &a [x]\nexclude: *a") == {"a": ["x"], "exclude": ["x"]}


def test_a_script_is_searched_in_linear_time(tmp_path):
    with time_limit(5):
        for number, text in enumerate(("exclude: [", "exclude(", "ignore ' ", "x = {", "a: 'b'\n")):
            files = {"pelicanconf.py": text * (250_000 // len(text)), "content/a.md": "A"}
            assert len(read(write_files(tmp_path / str(number), files))) == 1


ONLY_HERE = ["[", "[[", "](", "[a](", "<a ", "</", "{{", "import a ", "[a b=", "."]
HTML = ["<a ", "<li", "<pre>", "<table", "\n ", "\n\n", "<b>", "<!--kg-card-begin: html-->", "background-image: url("]
# Every pattern that searches whole texts, with texts that make it start, and perhaps fail, again and again.
PATTERNS = [
    (wordpress.FOOTNOTE, ['<sup data-fn="a" ', '<sup data-fn="a">', "<sup ", 'data-fn="a" ']),
    (wordpress.CAPTION, ["[caption ", "[caption]<img ", "[caption]<img>", "[caption]<a ", "[caption]"]),
    (wordpress.CODE, ["[code ", "[code]", "[code]a[/code", "[sourcecode]", "[/code]"]),
    (content.INLINE, ["![", "![a](", "<img ", '<img src="', "`", "![[", "](", "](<", "](a (", "]((", '](a "']),
    (content.MAY_MATTER, ["![", "<img ", "[a]: ", "\n[a", "[a", "[a ", "[a-", "](a", "](a.", "{", "import "]),
    (content.TAG, ["<img ", '<img src="', "<video", "<"]),
    (content.ATTRIBUTE, [" src=", ' src="', " srcset = ", " "]),
    (content.IN_SET, ["a ", "a 1", "a 1x,", ","]),
    *((each, ONLY_HERE) for each in content.NOT_PORTABLE.values()),
    *((each, HTML) for each in (html.REOPENED, html.LINE_BREAKS, html.BLOCK_TAG, html.PART, html.LEFT_ALONE)),
    *((each, HTML) for each in (html.BLANK_LINES, html.HTML_CARD)),
    (bounded.TOML_STRING, ['"', "'", '"""', "'''", '\\"', "#"]),
    (front_matter.TOML_VALUE, ['"', "= ", "a = ", "2020-01-01 ", "\n", "'"]),
    (bounded.LONG_NAME, ["a.", "a .", '"a".', "a-"]),
    *((each, [b"-", b"---", b"--- ", b"+++", b"\n", b"---\r"]) for each in front_matter.CLOSING.values()),
    (headers.JSON_STRING, ['"', '\\"', '"a', "a"]),
    (files.TITLE_HEADING, ["#", "# ", " ", "\n", "   #"]),
]


@pytest.mark.parametrize(("pattern", "units"), PATTERNS, ids=range(len(PATTERNS)))
def test_twice_the_text_takes_at_most_three_times_as_long(pattern, units):
    def find_all(unit, size):
        for _ in pattern.finditer(unit * (size // len(unit))):
            pass

    for unit in units:
        assert is_linear(partial(find_all, unit), 30_000), unit


def test_the_quick_check_never_misses_a_match():
    found = (
        *("{{< a >}}", "{% a %}", "[gallery]", "[/a]", "[a b=c]", "[a-b c-d=]", "import A from 'a'", "[[a]]"),
        *("[a](b.md#c)", "[a](b.mdx)", "[a](b.pdf)", "[![](/a.png)](<b.png>)", "<b>", "</b>", "<br/>", "<script a>"),
        *("<FORM>", "![a](b)", "![a\n](b)", "![[a.png]]", "<IMG src=a>", "<source srcset=a>", "<video poster=a>"),
        "a\n\n[b]: c.png",
    )
    for text in found:
        assert content.MAY_MATTER.search(text), text
    portable = "[A link](https://a.example/b), a [word], *more* (a < b), {c}, an import x.\n"
    assert not content.MAY_MATTER.search(portable * 9)
