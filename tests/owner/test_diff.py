"""The lines that differ between two texts."""

import random
import time

from blogapi.text import MAX_COMPARED, MAX_LINES, changed_lines
from blogapi.wings.owner.fields import marked
from tests.cases import cases
from tests.timing import memory_limit

MANY = " x" * 99  # too many equal words to compare each with each


def shown(old, new):
    return [kind + line for kind, line in changed_lines("\n".join(old), "\n".join(new))]


@cases(
    ("old", "new", "expected"),
    ("abc", "abc", []),
    ("", "a", ["-", "+a"]),
    ("abc", "abXc", [" a", " b", "+X", " c"]),
    ("abc", "ac", [" a", "-b", " c"]),
    ("abcdefg", "abcDefg", [" b", " c", "-d", "+D", " e", " f"]),
    ("abcdefghij", "Abcdefghij", ["-a", "+A", " b", " c"]),
    ("abcdefghij", "Abcdefghi", ["-a", "+A", " b", " c", "@", " h", " i", "-j"]),
)
def test_lines_that_differ_are_shown_with_two_around_them(old, new, expected):
    assert shown(old, new) == expected


def test_long_texts_that_differ_in_one_line_are_compared():
    old = [str(number) for number in range(100_000)]
    new = [*old[:50_000], "x", *old[50_001:]]
    assert shown(old, new) == [" 49998", " 49999", "-50000", "+x", " 50001", " 50002"]


def test_any_two_texts_become_each_other():
    letters = "aab\n\n"
    for seed in range(500):
        chance = random.Random(seed)
        old, new = ("".join(chance.choices(letters, k=chance.randrange(9))) for _ in "ab")
        lines = changed_lines(old, new)
        for text, kinds in ((old, " -"), (new, " +")):
            shown = "\n".join(line for kind, line in lines if kind in kinds)
            assert shown in f"\n{text}\n", (old, new)
        assert bool(lines) == (old != new), (old, new)


def test_texts_of_short_lines_need_little_memory():
    old, new = ("".join(f"{number % 97 + shift}\n" for number in range(300_000)) for shift in (0, 1))
    with memory_limit(8_000_000):
        changed_lines(old, new)
        changed_lines(old, old + "x")


def test_a_long_difference_is_shown_as_a_whole_up_to_a_limit():
    old = list(map(str, range(MAX_COMPARED + 6)))
    lines = shown(["first", *old], ["first", *reversed(old)])
    assert lines == [" first", *(f"-{line}" for line in old), *(f"+{line}" for line in reversed(old))]
    lines = shown(["a"] * MAX_LINES, ["b"] * MAX_LINES)
    assert lines == ["-a"] * MAX_LINES + ["@"]


def test_the_worst_texts_are_compared_quickly():
    count = MAX_COMPARED // 2
    repeated = [str(number // (MAX_COMPARED // 100 + 1)) for number in range(count)]
    old = [line for number, each in enumerate(repeated) for line in (each, f"a{number}")]
    new = [line for number, each in enumerate(repeated) for line in (each, f"b{number}")]
    started = time.process_time()
    shown(old, new)
    shown(["x"] * 199, ["x" if number % 2 else str(number) for number in range(199)])
    marked([("-", "x " * 999)] * 50 + [("+", "x 1 " * 499)] * 50 + [("-", "x " * 70)] * 50 + [("+", "x 1 " * 70)] * 50)
    assert time.process_time() - started < 1


@cases(
    ("old", "new", "expected"),
    ("a bad day", "a good day", ["a <mark>bad</mark> day", "a <mark>good</mark> day"]),
    ("a day", "a <b> day", ["a day", "a <mark>&lt;b&gt;</mark> day"]),
    ("all new", "other words", ["all new", "other words"]),
    ("1 b c 2 d", "3 b c d", ["<mark>1</mark> b c <mark>2</mark> d", "<mark>3</mark> b c d"]),
    (f"a b{MANY} c", f"a{MANY} d c", [f"a b{MANY} c", f"a{MANY} d c"]),
)
def test_the_words_that_differ_in_a_line_are_marked(old, new, expected):
    assert [str(line) for _, line in marked([("-", old), ("+", new)])] == expected


def test_lines_of_which_more_were_added_than_removed_are_not_marked():
    lines = [("-", "a b"), ("+", "a c"), ("+", "d")]
    assert marked(lines) == lines
