"""The rules for params."""

import pytest
from marshmallow import ValidationError

from blogapi.api.schemas import sentences
from blogapi.posts.params import equal, merge
from blogapi.posts.schemas import PostChangeSchema, PostInputSchema
from tests.cases import cases

POST = {"title": "A", "content": "B"}
NEW = PostInputSchema()


def nested(depth, value=1):
    """Objects nested within each other."""
    for _ in range(depth):
        value = {"a": value}
    return value


def said(params, schema=NEW):
    with pytest.raises(ValidationError) as caught:
        schema.load({**POST, "params": params})
    return [sentence for _, sentence in sentences(caught.value)]


@cases(
    "params",
    [
        {"author": "Ada", "math": True, "weight": 10, "ratio": 1.5, "tags": ["a", ["b"], {}], "empty": ""},
        {"several lines": "a\n\tb\r\nc", "__proto__": {"constructor": []}, "a" * 64: "é" * 16_000},
        {"low": -(2**53), "high": 2**53, "tiny": 5e-324, "huge": 1.7e308, "zero": -0.0},
        nested(8),
        nested(8, []),
        {"a": [0] * 499},
        {str(number): "a" for number in range(500)},
        {"a": "b" * (32 * 1024 - 8)},
    ],
)
def test_valid_params_stay_as_they_are(params):
    assert PostInputSchema().load({**POST, "params": params})["params"] == params


@pytest.mark.parametrize("empty", [{}, []])
def test_an_empty_object_or_php_array_counts_as_left_out(empty):
    assert NEW.load({**POST, "params": empty}) == NEW.load(POST)
    assert PostChangeSchema(partial=True).load({"params": empty}) == {}


NAME = "a name must be one line of 1 to 64 characters, at least one of them visible"


@cases(
    ("params", "expected"),
    [
        ([1], "params: must be an object"),
        ("a", "params: must be an object"),
        ({"a": None}, "params.a: must not be null"),
        ({"a": {"b": [1, None]}}, "params.a.b[1]: must not be null"),
        ({"": 1}, f"params: {NAME}"),
        ({"a" * 65: 1}, f"params: {NAME}"),
        ({"a\nb": 1}, f"params: {NAME}"),
        ({"a": {" \u200b": 1}}, f"params.a: {NAME}"),
        ({"a": "\0"}, "params.a: must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF"),
        ({"a": "\ud800"}, "params.a: must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF"),
        ({"a": 2**53 + 1}, "params.a: must be within ±2^53, or a string"),
        ({"a": -(10**400)}, "params.a: must be within ±2^53, or a string"),
        ({"a": float("inf")}, "params.a: must be a finite number"),
        (nested(9), f"params{'.a' * 8}: must be nested at most 8 deep"),
        (nested(1000), f"params{'.a' * 8}: must be nested at most 8 deep"),
        ({"a": [0] * 500}, "params: must have at most 500 values"),
        ({str(number): 1 for number in range(10_000)}, "params: must have at most 500 values"),
        ({"a": "b" * (32 * 1024 - 7)}, "params: must have at most 32 KiB as JSON"),
    ],
)
def test_invalid_params_are_refused_and_the_message_names_the_place(params, expected):
    assert said(params) == [expected]


def test_a_merge_patch_can_contain_null_only_in_objects():
    loaded = PostChangeSchema(partial=True).load({"params": {"a": None, "b": {"c": None}}})
    assert loaded == {"params": {"a": None, "b": {"c": None}}}
    assert said({"a": [None]}, PostChangeSchema()) == ["params.a[0]: must not be null"]


# The examples of RFC 7396, appendix A, for objects
@cases(
    ("target", "patch", "merged"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_is_applied_at_every_level(target, patch, merged):
    assert merge(target, patch) == merged


def test_values_of_different_types_or_orders_are_not_equal():
    assert equal({"a": [1, {"b": "c"}], "d": 2}, {"a": [1, {"b": "c"}], "d": 2})
    assert not equal({"a": 1, "d": 2}, {"d": 2, "a": 1})
    assert not equal({"a": [1]}, {"a": [True]})
    assert not equal({"a": 0}, {"a": False})
