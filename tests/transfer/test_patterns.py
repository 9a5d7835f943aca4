"""Regular expressions on text from other programs: their time must grow linearly, not quadratically."""

import time

import pytest

from blogapi.wings.markdown import files, front_matter, html
from blogapi.wings.transfer import content, wordpress

# Every pattern that searches whole texts, with texts that make it start, and perhaps fail, again and again.
PATTERNS = [
    (wordpress.FOOTNOTE, ['<sup data-fn="a" ', '<sup data-fn="a">', "<sup ", 'data-fn="a" ']),
    (wordpress.CAPTION, ["[caption ", "[caption]<img ", "[caption]<img>", "[caption]<a ", "[caption]"]),
    (wordpress.CODE, ["[code ", "[code]", "[code]a[/code", "[sourcecode]", "[/code]"]),
    (content.INLINE, ["![", "![a](", "<img ", '<img src="', "`", "![[", "](", "](<", "](a (", "]((", '](a "']),
    (content.MAY_SHOW, ["![", "<img ", "[a]: ", "\n[a", "\n[a]"]),
    (content.TAG, ["<img ", '<img src="', "<video", "<"]),
    (content.ATTRIBUTE, [" src=", ' src="', " srcset = ", " "]),
    (content.IN_SET, ["a ", "a 1", "a 1x,", ","]),
    *(
        (each, ["[", "[[", "](", "[a](", "<a ", "</", "{{", "import a ", "[a b=", "."])
        for each in content.NOT_PORTABLE.values()
    ),
    *(
        (
            each,
            [
                "<a ",
                "<li",
                "<pre>",
                "<table",
                "\n ",
                "\n\n",
                "<b>",
                "<!--kg-card-begin: html-->",
                "background-image: url(",
            ],
        )
        for each in (
            html.REOPENED,
            html.LINE_BREAKS,
            html.BLOCK,
            html.PART,
            html.WHOLE,
            html.BLANK_LINES,
            html.HTML_CARD,
        )
    ),
    (front_matter.TOML_STRING, ['"', "'", '"""', "'''", '\\"', "#"]),
    (front_matter.TOML_VALUE, ['"', "= ", "a = ", "2020-01-01 ", "\n", "'"]),
    (front_matter.LONG_NAME, ["a.", "a .", '"a".', "a-"]),
    *((each, [b"-", b"---", b"--- ", b"+++", b"\n", b"---\r"]) for each in front_matter.CLOSING.values()),
    (files.HEADING, ["#", "# ", " ", "\n", "   #"]),
]


def seconds(pattern, text):
    """Return the shortest of several runs that find all matches."""
    times = []
    for _ in range(3):
        begun = time.thread_time()
        for _ in pattern.finditer(text):
            pass
        times.append(time.thread_time() - begun)
    return min(times)


@pytest.mark.parametrize(("pattern", "units"), PATTERNS, ids=range(len(PATTERNS)))
def test_twice_the_text_takes_at_most_three_times_as_long(pattern, units):
    def is_linear(text):
        return seconds(pattern, 2 * text) < 3 * seconds(pattern, text) + 0.01

    for unit in units:
        assert any(is_linear(unit * (30_000 // len(unit))) for _ in range(3)), unit  # A busy machine can spoil one.
