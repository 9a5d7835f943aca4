"""Patterns over the text of other programs: their time grows with its length, not with its square."""

import time

import pytest

from blogapi.wings.markdown import files, front_matter
from blogapi.wings.transfer import content, wordpress

# Each pattern that searches a whole text, with texts that make it begin, and perhaps fail, again and again.
PATTERNS = [
    (wordpress.FOOTNOTE, ['<sup data-fn="a" ', '<sup data-fn="a">', "<sup ", 'data-fn="a" ']),
    (wordpress.CAPTION, ["[caption ", "[caption]<img ", "[caption]<img>", "[caption]<a ", "[caption]"]),
    (
        content.CODE_OR_IMAGE,
        ["![", "![a](", "<img ", '<img src="', "```\n", "`", "![[", "[a]: ", "\n[a]: a", "![a](()"],
    ),
    *(
        (each, ["[", "[[", "](", "[a](", "<a ", "</", "{{", "import a ", "[a b=", "."])
        for each in content.NOT_PORTABLE.values()
    ),
    (content.CODE, ["```\n", "~~~", "`", "` `", "\n```a"]),
    (front_matter.TOML_STRING, ['"', "'", '"""', "'''", '\\"', "#"]),
    (front_matter.TOML_VALUE, ['"', "= ", "a = ", "2020-01-01 ", "\n", "'"]),
    (front_matter.LONG_NAME, ["a.", "a .", '"a".', "a-"]),
    *((each, [b"-", b"---", b"--- ", b"+++", b"\n", b"---\r"]) for each in front_matter.CLOSING.values()),
    (files.HEADING, ["#", "# ", " ", "\n", "   #"]),
]


def seconds(pattern, text):
    """Return the least time of some searches for all matches."""
    times = []
    for _ in range(3):
        begun = time.thread_time()
        for _ in pattern.finditer(text):
            pass
        times.append(time.thread_time() - begun)
    return min(times)


@pytest.mark.parametrize(("pattern", "units"), PATTERNS, ids=range(len(PATTERNS)))
def test_twice_the_text_takes_at_most_three_times_as_long(pattern, units):
    for unit in units:
        once = unit * (30_000 // len(unit))
        assert seconds(pattern, 2 * once) < 3 * seconds(pattern, once) + 0.01, unit
