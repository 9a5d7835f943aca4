"""Regular expressions on text from other programs must take linear, not quadratic, time."""

from functools import partial

import pytest

from blogapi import bounded
from blogapi.markdown import files, front_matter, headers, html
from blogapi.wings.transfer import content, wordpress
from tests.timing import is_linear

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


def test_what_is_looked_for_in_a_text_is_never_missed_by_the_quick_look():
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
