"""Front matter that is a JSON object without delimiters, as in Hugo."""

import json
import time

import pytest

from blogapi.wings.markdown.files import parse
from blogapi.wings.markdown.front_matter import MarkdownError

TEXT = '{\n\t"title": "A \\"b\\" {",\r\n  "date": "2020-01-02",\n  "draft": false, "tags": ["x"], "url": "a\\/b",\n' + (
    '  "weight": 10, "ratio": 1.5, "on": true, "none": null, "emoji": "\\ud83d\\ude00"\n}\n\nText {of} it.\n'
)


def test_a_json_object_is_front_matter():
    file = parse(TEXT.encode())
    assert file.fields == {
        "title": 'A "b" {',
        "published_at": "2020-01-02T00:00:00Z",
        "status": "published",
        "tags": ["x"],
        "params": {"url": "a/b", "weight": 10, "ratio": 1.5, "on": True, "emoji": "\U0001f600"},
        "content": "Text {of} it.\n",
    }
    assert [file.line_of(name) for name in ("title", "published_at", "weight")] == [2, 3, 5]
    assert file.content_line == 8


def test_other_braces_are_text():
    for text in ("{% include a %}\nText", "{{< a >}}", '{"a"}', "{a: b}"):
        assert parse(text.encode()).fields["content"] == text


def test_json_that_cannot_be_read_is_refused_with_the_line_and_quickly():
    refused = {
        '{"a": 1': "never ends",
        '{"a": "b\n': "never ends",
        '{"a": 1,\n "b": x}': "line 2: not valid JSON",
        '{"a": 1, "a": 2}': "given twice",
        '{"a": ' + "[" * 30_000 + "]" * 30_000 + "}": "at most 16 deep",
        '{"a": [' + "1," * 3000 + "1]}": "at most 2,000 values",
        '{"a": "' + "b" * 70_000 + '"}': "more than 64 KiB",
        '{"a": "\\ud800"}': "half of a surrogate pair",
        json.dumps({"a": {"b": 1}})[:-1] * 5000: "never ends",
    }
    begun = time.monotonic()
    for text, reason in refused.items():
        with pytest.raises(MarkdownError, match=reason):
            parse(text.encode())
    assert time.monotonic() - begun < 2
    assert parse(f'{{"title": "A", "n": {"1" * 5000}}}'.encode()).fields["params"] == {"n": "1" * 5000}
