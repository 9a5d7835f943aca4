"""Markdown files that are refused: the message names the line, and nothing takes long."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogapi.markdown.files import FIELD_NAMES, ReadOptions, parse
from blogapi.markdown.front_matter import MarkdownError
from tests.cases import cases
from tests.markdown.texts import front
from tests.timing import time_limit

MIB = 1024**2
NO_DATE = "`date` must be a date such as 2026-11-20, or a time such as 2026-11-20T10:10:00Z"
NO_ALIASES = "anchors and aliases (& and *) are not allowed"
NO_TAGS = "must be a list, or text with commas between the tags"
NO_MAPPING = "mapping values are not allowed here: put the text in quotes"
NO_TOKEN = "a character cannot start any token: put the text in quotes, and spaces instead of tabs"
UNKNOWN = (
    "is unknown: put it into `params`, or add ?unknown=params to the URL; "
    f"known: {', '.join(FIELD_NAMES)}, and `id` and `created_at`, which are ignored"
)
IN_REQUEST = ReadOptions(program=None, keeps_others=False)


def toml(text):
    return front(text, mark="+++")


def error(data, options=IN_REQUEST):
    with pytest.raises(MarkdownError) as caught:
        parse(data, options)
    return str(caught.value)


YAML = [
    ("title: A\nslug: a\ntitle: B", "line 4: `title` is given twice"),
    ("extra:\n  a: 1\n  a: 2", "line 4: `a` is given twice"),
    ("title: A\nlayout: post", f"line 3: `layout` {UNKNOWN}"),
    ("title: A\nupdated_at: 2020-01-01", f"line 3: `updated_at` {UNKNOWN}"),
    *((text, f"line 2: {NO_ALIASES}") for text in ("title: &a A", "&a title: A", "&a {title: A}")),
    ("a: 1\ntitle: *a", f"line 3: {NO_ALIASES}"),
    ("title: !!python/object/apply:os.system [ls]", "line 2: tags (!) are not allowed"),
    *((text, "line 2: tags (!) are not allowed") for text in ("title: ! A", "!!map {title: A}")),
    ("? [a]\n: b", "line 2: a name must be text"),
    ("title: A\nslug: b: c", f"line 3: not valid YAML: {NO_MAPPING}"),
    ("title: @home", f"line 2: not valid YAML: {NO_TOKEN}"),
    ("title: 'A", "line 2: not valid YAML: found unexpected end of stream"),
    ("\ttitle: A", f"line 2: not valid YAML: {NO_TOKEN}"),
    ('title: "A\u2028B\x85C"\nlayout: post', f"line 3: `layout` {UNKNOWN}"),
    ('title: "A\u2029B"\r\nslug: b: c', f"line 3: not valid YAML: {NO_MAPPING}"),
    ("title: A\nslug: \x08", "line 3: control characters are not allowed"),
    ("title: \uffff", "line 2: control characters are not allowed"),
    *(
        (text, "line 2: must be names with values, such as `title: Hello`")
        for text in ("just text", "- title", "--- a")
    ),
    ("title: A\n--- {slug: a}", "line 3: the front matter must be one document"),
    ("title: [A]", "line 2: `title` must be text"),
    ("slug: {a: b}", "line 2: `slug` must be text"),
    *((f"tags: {tags}", f"line 2: `tags` {NO_TAGS}") for tags in ("{a: b}", "[[a]]")),
    ("cover: {alt: A}", "line 2: `cover` must be a URL, or have a `url` or `src`"),
    ("cover: [a]", "line 2: `cover` must be text"),
    ("draft: maybe", "line 2: `draft` must be true or false"),
    ("published: [true]", "line 2: `published` must be true or false"),
    ("title: A\ndraft: true\nstatus: published", "line 3: `draft` and `status` have different values"),
    ("status: draft\npublished: true", "line 3: `published` and `status` have different values"),
    ("summary: A\ndescription: B", "line 2: `summary` and `description` have different values"),
    ("date: 2026-11-20\npubDate: 2026-11-21", "line 2: `date` and `pubDate` have different values"),
    ("cover: a\nimage: b", "line 2: `cover` and `image` have different values"),
    ("date: tomorrow", f"line 2: {NO_DATE}"),
]
PARTS = "the front matter must have names of at most 16 parts"
QUOTED = r'"\""'  # a part with an escape in it
TOML = [
    ("title = 'A'\ntitle = 'B'", "line 3: not valid TOML: Cannot overwrite a value"),
    ("title = 'A'\nslug = b", "line 3: not valid TOML: Invalid value: text must be in quotes"),
    ("title = ", "line 2: not valid TOML: Invalid value: text must be in quotes"),
    ("title = 'A'\ndate = 1.5", f"line 3: {NO_DATE}"),
    ("title = 'A'\n[extra]\na = 1", f"line 3: `extra` {UNKNOWN}"),
    ("title = " + "9" * 5000, "line 2: not valid TOML: nested too deeply, or a number with too many digits"),
    # input that would take long
    (f"[{'.'.join([QUOTED] * 4000)}]\n" + "\n".join(f"b{n} = 1" for n in range(4500)), f"line 2: {PARTS}"),
    (f"title = 'A'\n[{'a.' * 99}a]\n" + f"{'a.' * 98}b = 1\n" * 200, f"line 3: {PARTS}"),
    (f"a = [\n1, {{ {'a . ' * 16}a = 1 }}]", f"line 3: {PARTS}"),
    (f"{'a.' * 16}a = 1", f"line 2: {PARTS}"),
    (f"{'.'.join([QUOTED] * 17)} = 1", f"line 2: {PARTS}"),
    ('"' + r"\"" * 30_000, "line 2: not valid TOML: Illegal character '\\n'"),
]
ENDLESS = "line 1: the front matter never ends: the closing line"
VALUES = "the front matter must have at most 2,000 values"
FILES = [
    *((data, f"{ENDLESS} --- is missing") for data in (b"---\ntitle: A\n", b"---")),
    (b"+++\ntitle = 'A'\n---\n", f"{ENDLESS} +++ is missing"),
    (b"---\n" + b"# comment\n" * 7000 + b"---\n", "line 1: the front matter must have at most 64 KiB"),
    (b"---\ntitle: A\nslug: \xff\n---\n", "line 3: must be UTF-8"),
    (b"---\ntitle: A\n---\n\nB\n\xff", "line 6: must be UTF-8"),
    (b"A\n\xed\xa0\x80", "line 2: must be UTF-8"),
    *(("---\n".encode(code), "line 1: must be UTF-8: this seems to be UTF-16") for code in ("utf-16", "utf-16-le")),
    *((front(text), f"line 2: {VALUES}") for text in (f"tags: [{'a, ' * 21_000}]", "tags:\n" + "- - - a\n" * 8000)),
    *((toml(f"tags = [{text}]"), f"line 2: {VALUES}") for text in ("1," * 30_000, "[]," * 20_000)),
    (front("".join(f"a{number}:\n" for number in range(8000))), f"line 2: {VALUES}"),
    (toml("".join(f"a{number} = 1\n" for number in range(6000))), f"line 2: {VALUES}"),
]
REFUSED = [(front(text), message) for text, message in YAML] + [(toml(text), message) for text, message in TOML] + FILES


@cases(("data", "message"), REFUSED)
def test_the_message_for_a_refused_file_names_the_line_and_what_is_wrong(data, message):
    assert error(data) == message


def test_text_may_have_any_number_of_commas_and_brackets_and_toml_names_of_16_parts():
    assert parse(front(f"excerpt: '{',[{' * 9000}'")).fields["excerpt"] == ",[{" * 9000
    assert parse(toml(f"excerpt = '{',[{' * 9000}'")).fields["excerpt"] == ",[{" * 9000
    assert parse(front(f"tags: [{'a, ' * 1900}]")).fields["tags"] == ["a"] * 1900
    names = [f"[{'.'.join([QUOTED] * 16)}]", f"{'a.' * 15}a = '{'.' * 100}'", f"b = [{'1,' * 1900}]"]
    assert parse(toml("\n".join(["title = 'A'", *names]))).fields["title"] == "A"
    assert parse(toml("".join(f"b{n} = ',,,,'\n" for n in range(1900)))).lines["b1899"] == 1901


def test_json_that_cannot_be_read_is_refused_with_the_line_and_quickly():
    refused = {
        '{"a": 1': "never ends",
        '{"a": "b\n': "never ends",
        '{"a": 1,\n "b": x}': "line 2: not valid JSON",
        '{"a": 1, "a": 2}': "given twice",
        '{"a": ' + "[" * 30_000 + "]" * 30_000 + "}": "more than 16 levels deep",
        '{"a": [' + "1," * 3000 + "1]}": "at most 2,000 values",
        '{"a": "' + "b" * 70_000 + '"}': "longer than 64 KiB",
        '{"a": "\\ud800"}': "half of a surrogate pair",
        json.dumps({"a": {"b": 1}})[:-1] * 5000: "never ends",
    }
    with time_limit(2):
        for text, reason in refused.items():
            assert reason in error(text.encode(), ReadOptions())
    assert parse(f'{{"title": "A", "n": {"1" * 5000}}}'.encode()).fields["params"] == {"n": "1" * 5000}


DEEP = "the front matter must not be nested more than 16 levels deep"


@cases(
    ("file", "most", "message"),
    (lambda n: front(f"title: A\na: {'[' * n}{']' * n}"), 15, f"line 3: {DEEP}"),
    (lambda n: front(f"title: A\na: {'{b: ' * n}1{'}' * n}"), 15, f"line 3: {DEEP}"),
    (lambda n: toml(f"title = 'A'\na = {'[' * n}{']' * n}"), 16, f"line 2: {DEEP}"),
    (lambda n: front(f"title: A\na: [{'1,' * n}]"), 1989, f"line 2: {VALUES}"),  # So do 11 events around them.
    (lambda n: toml(f"title = 'A'\na = [{'1,' * n}]"), 1997, f"line 2: {VALUES}"),  # Line breaks and the bracket do.
    (lambda n: b"Title: A\n" + b"".join(b"a%d: 1\n" % number for number in range(n)), 1999, f"line 1: {VALUES}"),
)
def test_the_bounds_of_nesting_and_of_values_are_exact(file, most, message):
    assert parse(file(most)).fields["title"] == "A"
    assert error(file(most + 1), ReadOptions()) == message


@cases(
    "text",
    [
        "2026-13-01", "2026-02-30", "2026-11-20T24:00:00Z", "2026-11-20T10:61:00Z", "2026-11-20T10:10:00+99:00",
        "0000-01-01", "0001-01-01T00:00:00+01:00", "9999-12-31T23:00:00-02:00", "2026-11", "20261320", "1763633400",
        "2026-11-20T", "2026-11-20 noon", "2026-11/20", "٢٠٢٦-11-20", "Feb 30 2015", "1" * 5000,
        "May 4, 2019 10:00 CEST", "May 4, 2019 10:00 in Rome",
        "May 4, 2019 25:00", "May 4, 2019 10 PM", "4 Mai 2019", "Sat May 4 10:00:00 2019 PM",
        "-", "2 " * 30, "May 4, 2019" + " " * 60_000 + "x", "2 " * 30_000, "4 May 2019 (" * 5000,
    ],
)  # fmt: skip
def test_text_that_is_not_a_date_is_refused(text):
    assert error(front(f"date: '{text}'")).startswith("line 2: `date` must be a date")


def test_front_matter_may_have_64_kib():
    most = b"title: A\n#" + b"-" * (65536 - 11) + b"\n"
    assert parse(b"---\n" + most + b"---\n\nB").fields == {"title": "A", "content": "B"}
    assert error(b"---\n#" + most + b"---\n\nB") == "line 1: the front matter must have at most 64 KiB"


def test_messages_stay_short():
    assert len(error(front(f"{'a' * 60_000}: 1"))) < 250
    assert len(error(front(f"{'a' * 900}: 1\n{'a' * 900}: 1"))) < 250
    assert len(error(toml(f"[{'a' * 20_000}]\n[{'a' * 20_000}]"))) < 300


NAMES = st.sampled_from(["title", "tags", "date", "draft", "image", "created_at", "x"])
PIECES = st.sampled_from(list("-:#'\"\\[]{},&*!|>%@`?=.+~ \n\t\r\0aZ09é\x85\u2028\ufeff\uffff😀")) | st.sampled_from(
    ["---", "\n  ", ": "]
)
JUNK = st.lists(NAMES | PIECES | st.just("= ") | st.text(max_size=3), max_size=30).map("".join)


@given(JUNK, st.sampled_from(["---", "+++"]), st.binary(max_size=3))
def test_every_file_is_read_or_refused(text, mark, last):
    data = front(text, mark=mark) + last
    with suppress(MarkdownError):
        assert data.endswith(parse(data).fields["content"].encode())


ALIASES = [f"{b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in ("ab", "bc", "cd", "de", "ef", "fg", "gh", "hi")]
HOSTILE_YAML = [
    "\n".join(["a: &a [1]", *ALIASES]), "[" * 60_000, "{" * 60_000, "a: " + "{a: " * 15_000, "- " * 30_000,
    "? " * 30_000,
    "!" * 60_000, "&" * 60_000, "'" * 60_001, '"' * 60_001, "a: '" + "\n" * 60_000, "a:\n" * 20_000,
    "\n".join(f"a{n}:" for n in range(8000)), "[" + "a," * 30_000, "a: |\n" + " \n" * 30_000,
    "a: " + " " * 60_000 + "!",
    "%" * 60_000, ":" * 60_000, "\t" * 60_000, "a: b: " * 10_000, "# \n" * 21_000 + "!",
]  # fmt: skip
HOSTILE_TOML = [
    "a = " + "[" * 60_000, "a." * 30_000 + "a = 1\nb = ", "a" * 60_000 + "=", "'a' . " * 10_000, "a = {" * 12_000,
    "\n".join([f"{'a.' * 99}b = 1"] * 300), "a = '" + "'" * 60_000, 'a = "' * 12_000, 'a = """' + '"\\' * 30_000,
    '\\"""a"' * 745 + "#" + "x" * 59_000, "\\'''a'" * 745 + "#" + "x" * 59_000,
    "\t" * 60_000 + "=", "a" + " " * 60_000, "= " * 30_000, "=" + "#\n" * 30_000,
    "[a]\n" * 15_000, "[[a]]\n" * 10_000, "\n".join(f"a{n} = {n}" for n in range(5000)),
    'a = """' + '\\"' * 30_000,
]  # fmt: skip
HOSTILE = [
    b"---\n" + b" ---\n" * MIB, b"---\n" + b"-" * 4 * MIB, b"---\n" + b"\n" * 4 * MIB, b"---\n" + b" " * 4 * MIB,
    b"---\n" + b"--- x\n" * MIB, b"+++\n" + b"---\n" * MIB, b"\xff" * 4 * MIB, b"A" * 4 * MIB + b"\xff",
    b"---\ntitle: A\n---\n" + b"\x80" * 4 * MIB, b"---" + b" " * 4 * MIB + b"x\n\xff",
]  # fmt: skip


@cases("data", [*map(front, HOSTILE_YAML), *map(toml, HOSTILE_TOML), *HOSTILE])
def test_hostile_files_are_refused_quickly(data):
    """If a step takes many times as long as it should, it takes quadratic time."""
    with time_limit(2):
        error(data)


@cases(
    "content",
    [
        "---\n" * MIB, "#\n" * 2 * MIB, "# " + "# " * 2 * MIB, "#" + " " * 4 * MIB + "x", "#" * 4 * MIB,
        "\u200b" * MIB + "\n# A", "\n" * 4 * MIB, "# " + "#" * 4 * MIB + "x",
    ],
)  # fmt: skip
def test_large_contents_are_read_quickly(content):
    with time_limit(2):
        assert parse(front("status: draft", content)).fields["content"] == content
