"""The fast paths for texts and slugs, which must have the same results as marshmallow and slugify."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import Schema, ValidationError
from slugify import slugify

from blogapi.documents import EMPTY, Field
from blogapi.posts.schemas import INPUT_TYPES, LEFT_OUT, PostChangeSchema, PostInputSchema
from blogapi.posts.slugs import SLUG_OPTIONS, slug_of

SCHEMAS = PostInputSchema(), PostChangeSchema(partial=True)
CHARACTERS = st.sampled_from("aÄ. \t\n\r\0\x1c\x7f\x85\xa0\u200b\u2028\ud800\U000e0001-")
TEXTS = st.text(CHARACTERS, max_size=4) | st.sampled_from(["published", "scheduled", "x" * 256, "x" * 1001])
VALUES = st.none() | st.booleans() | st.integers() | TEXTS
BODIES = st.dictionaries(
    st.sampled_from([*PostInputSchema().fields, "id", "a name"]),
    VALUES
    | st.lists(VALUES, max_size=3)
    | st.sampled_from(["https://a.example/b", "2026-11-20T10:10:00+01:00", "2026-11-20", ["a"] * 51, ["A", "a", "Ä"]])
    | st.dictionaries(TEXTS, VALUES, max_size=2),
    max_size=4,
)


class Marked(str):
    """A string for which the schemas do not take the fast path."""


def marked(value):
    """A value whose strings are all Marked."""
    if isinstance(value, dict):
        return {name: marked(each) for name, each in value.items()}
    if isinstance(value, list):
        return [marked(each) for each in value]
    return Marked(value) if isinstance(value, str) else value


def outcome(load, *arguments):
    """The result of loading, or the messages of its error."""
    try:
        return load(*arguments)
    except ValidationError as error:
        return error.normalized_messages()


@pytest.mark.parametrize("kind", ["line", "text", "slug", "tags", "url"])
def test_an_optional_field_of_any_kind_can_be_empty(kind):
    empty = [] if kind == "tags" else ""
    assert INPUT_TYPES[kind](Field(kind, "optional", "", "", 9, empty=empty)).deserialize(empty) == empty


@pytest.mark.parametrize("schema", SCHEMAS)
@given(BODIES, st.booleans())
def test_a_post_is_loaded_as_marshmallow_does(schema, body, is_whole):
    body = {"title": " A ", "content": "B\n"} | body if is_whole else body
    left_out = [name for name, value in LEFT_OUT if body.get(name) == value]
    left_out += [
        name for name in body.keys() - EMPTY.keys() - {"title", "content", "id", "a name"} if body[name] is None
    ]
    given_fields = {name: marked(value) for name, value in body.items() if name not in left_out}
    assert outcome(schema.load, body) == outcome(Schema.load, schema, given_fields)


# Slugs from ASCII titles


ASCII = st.text(st.characters(max_codepoint=127), max_size=90)
TITLES = ASCII | st.text("aZ09 -,'&#;_.", max_size=90)


@given(TITLES)
def test_the_slug_of_a_title_is_the_same_as_slugifys(title):
    assert slug_of(title) == (slugify(title, **SLUG_OPTIONS) or "untitled")
