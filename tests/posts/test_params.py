"""The params of a post."""

import json

import pytest
from marshmallow import ValidationError

from blogapi.api.schemas import sentences
from blogapi.clock import rfc3339
from blogapi.posts.schemas import PostInputSchema
from tests.cases import cases
from tests.conftest import NOON, message

PARAMS = {"author": "Ada", "math": True, "weight": 10, "ratio": 1.0, "series": {"name": "Lakes", "parts": [1, [2]]}}
POST = {"title": "A", "content": "B", "params": PARAMS}
SCHEMA = PostInputSchema()


def nested(depth, value=1):
    """Objects nested within each other."""
    for _ in range(depth):
        value = {"a": value}
    return value


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
    assert SCHEMA.load(POST | {"params": params})["params"] == params


MANY = {str(number): 1 for number in range(10_000)}
CONTROL = "must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF"
NAME = "a name must be one line of 1 to 64 characters, at least one of them visible"


@cases(
    ("params", "expected"),
    *((params, "params: must be an object") for params in ([1], "a")),
    ({"a": None}, "params.a: must not be null"),
    ({"a": {"b": [1, None]}}, "params.a.b[1]: must not be null"),
    *(({name: 1}, f"params: {NAME}") for name in ("", "a" * 65, "a\nb")),
    ({"a": {" \u200b": 1}}, f"params.a: {NAME}"),
    *(({"a": text}, f"params.a: {CONTROL}") for text in ("\0", "\ud800")),
    *(({"a": number}, "params.a: must be within ±2^53, or a string") for number in (2**53 + 1, -(10**400))),
    ({"a": float("inf")}, "params.a: must be a finite number"),
    *((nested(depth), f"params{'.a' * 8}: must not be nested more than 8 levels deep") for depth in (9, 1000)),
    *((params, "params: must have at most 500 values") for params in ({"a": [0] * 500}, MANY)),
    ({"a": "b" * (32 * 1024 - 7)}, "params: must have at most 32 KiB as JSON"),
)
def test_invalid_params_are_refused_and_the_message_names_the_place(params, expected):
    with pytest.raises(ValidationError) as caught:
        SCHEMA.load(POST | {"params": params})
    assert [sentence for _, sentence in sentences(caught.value)] == [expected]


# Over HTTP


# Names and texts that look like other parts of a stored post
HOSTILE = {
    "status": "scheduled",
    "updated_at": "2000-01-01T00:00:00Z",
    "tags": ["x"],
    "content": '","tags":[],"status":"draft","params":{"a":1}}',
    "params": {"params": {"published_at": "1999-01-01T00:00:00Z", "excerpt": "e"}},
    "id": 7,
    "__proto__": {},
}
LATER = "2026-11-20T12:01:00Z"


def post_file(client, front_matter, query=""):
    data = f"---\ntitle: A\n{front_matter}\n---\n\nB"
    return client.post(f"/v1/posts{query}", data=data, content_type="text/markdown")


def test_params_are_returned_as_sent_and_in_the_same_order(client):
    answer = client.post("/v1/posts", data=json.dumps(POST), content_type="application/json")
    assert (answer.status_code, answer.json["params"]) == (201, PARAMS)
    assert json.dumps(client.get("/v1/posts/1").json["params"]) == json.dumps(PARAMS)
    assert client.get("/v1/posts").json == [answer.json]
    found = {"id": "1", "title": "A", "status": "draft", "params": PARAMS}
    assert client.get("/v1/posts?fields=params").json == [found]
    assert "params" not in client.get("/v1/posts?fields=slug,updated_at").json[0]


def test_a_put_that_only_reorders_params_is_a_change(client):
    for params in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
        data = json.dumps(POST | {"slug": "a", "params": params})
        client.put("/v1/posts/by-slug/a", data=data, content_type="application/json")
        assert json.dumps(client.get("/v1/posts/1").json["params"]) == json.dumps(params)


@cases("front_matter", ["params:", "params: ~", "params: null", "params: {}"])
def test_empty_params_of_a_file_are_left_out(client, front_matter):
    assert "params" not in post_file(client, front_matter).json


def test_a_yaml_number_too_large_for_json_becomes_text(client):
    numbers = f"tweet: 1234567890123456789\nlong: {'9' * 500}\nexact: -9007199254740992"
    found = post_file(client, numbers, "?unknown=params").json["params"]
    assert found == {"tweet": "1234567890123456789", "long": "9" * 500, "exact": -(2**53)}


# The examples of RFC 7396, appendix A, for objects; an empty object changes nothing, and null clears all
@cases(
    ("target", "patch", "merged"),
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"a": ["b"]}, {"a": {"b": "c"}}, {"a": {"b": "c"}}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ({"a": "b"}, {}, {"a": "b"}),
    ({"a": "b"}, None, {}),
)
def test_a_patch_merges_params_at_every_level(client, target, patch, merged):
    client.put("/v1/posts/by-slug/a", json=POST | {"params": target})
    assert client.patch("/v1/posts/1", json={"params": patch}).json.get("params", {}) == merged
    assert message(client.patch("/v1/posts/1", json={"params": {"a": [None]}})) == "params.a[0]: must not be null"


def test_a_patch_may_remove_all_values_and_add_as_many(client):
    client.post("/v1/posts", json=POST | {"params": dict.fromkeys(map(str, range(500)), 1)})
    change = {str(number): None if number < 500 else 2 for number in range(1000)}
    answer = client.patch("/v1/posts/1", json={"params": change})
    assert answer.json["params"] == dict.fromkeys(map(str, range(500, 1000)), 2)
    assert message(client.patch("/v1/posts/1", json={"params": {"a": 1}})) == "params: must have at most 500 values"
    more = {"params": change | {"1000": None}}
    assert message(client.patch("/v1/posts/1", json=more)) == "params: must have at most 1,000 values"


def test_one_and_true_are_different_values(client, clock):
    one, true = ({"a": [value, {"b": value}]} for value in (1, True))
    before = client.post("/v1/posts", json=POST | {"params": one}).json
    clock.now += 60
    assert client.patch("/v1/posts/1", json={"params": one}).json == before
    after = client.patch("/v1/posts/1", json={"params": true}).json
    assert (json.dumps(after["params"]), after["updated_at"]) == (json.dumps(true), LATER)
    put = client.put("/v1/posts/by-slug/a", json=POST | {"params": one}).json
    assert json.dumps(put["params"]) == json.dumps(one)


def test_a_put_replaces_params(client, clock):
    first = client.post("/v1/posts", json=POST).json
    clock.now += 60
    assert client.put("/v1/posts/by-slug/a", json=POST).json == first
    assert client.put("/v1/posts/by-slug/a", json=POST | {"params": {"b": 1}}).json["params"] == {"b": 1}
    assert "params" not in client.put("/v1/posts/by-slug/a", json={"title": "A", "content": "B"}).json


def test_names_in_params_are_never_mistaken_for_fields(client, clock):
    """The service looks for field names in a stored post without parsing it."""
    times = {"published_at": LATER}
    created = client.post("/v1/posts", json=POST | {"tags": ["y"], "params": HOSTILE}).json
    scheduled = client.patch("/v1/posts/1", json=times | {"status": "scheduled"}).json
    assert scheduled == created | times | {"status": "scheduled"}
    clock.now = NOON + 120
    published = scheduled | {"status": "published", "updated_at": rfc3339(clock.now)}
    assert client.get("/v1/posts/1").json == published
    for field in ("slug", "content", "tags", "published_at", "created_at", "updated_at", "params"):
        expected = {name: published[name] for name in ("id", "title", "status", field)}
        assert client.get(f"/v1/posts?fields={field}").json == [expected]
    for missing in ("excerpt", "cover_image"):
        assert missing not in client.get(f"/v1/posts?fields={missing}").json[0]
    client.patch("/v1/tags/y", json={"name": "z"})
    renamed = client.get("/v1/posts/1").json
    assert (renamed["tags"], renamed["params"], renamed["updated_at"]) == (["z"], HOSTILE, "2026-11-20T12:02:00Z")
    assert client.get("/v1/posts?q=scheduled").json == []


def test_params_in_a_file_survive_a_round_trip(client):
    strings = {"date": "2024-05-01", "yes": "no", "lines": "a\nb", "word": "1e3", "hex": "0x10", "none": "~", "no": ""}
    params = PARAMS | {"strings": strings, "empty": {}, "list": [[], [{"a": 1e22}, {}]], "tiny": 1e-7}
    client.post("/v1/posts", data=json.dumps(POST | {"params": params}), content_type="application/json")
    file = client.get("/v1/posts/1", headers={"Accept": "text/markdown"}).text
    assert "params:\n  author: Ada\n  math: true\n  weight: 10\n  ratio: 1.0\n  series:\n    name: Lakes\n" in file
    assert "  tiny: 1.0e-07\nid: " in file
    client.put("/v1/posts/by-slug/a", json={"title": "B", "content": "B"})
    put = client.put("/v1/posts/by-slug/a", data=file, content_type="text/markdown")
    assert json.dumps(put.json["params"]) == json.dumps(params)


def test_yaml_scalars_are_what_they_look_like(client):
    values = "a: true, b: yes, c: 10, d: 0x10, e: 010, f: 1.5, g: 1e3, h: 2024-05-01, i: '1', j: ~, k: , l: 1_0, m: ''"
    block = values.replace(", ", "\n  ")
    assert post_file(client, f"params:\n  {block}").json["params"] == {
        **{"a": True, "b": "yes", "c": 10, "d": 16, "e": 10, "f": 1.5, "g": 1000.0},
        **{"h": "2024-05-01", "i": "1", "l": "1_0", "m": ""},
    }


def test_toml_values_are_kept_dates_become_text_and_dotted_names_tables(client):
    values = (
        "a = true\nb = 1_0\nc = 1.5\nd = 2024-05-01\ne = ['x', {f = 0x10}]\ng.h = 2\ng.i = [{j = 3, k.l = 2026-11-20}]"
    )
    data = f"+++\ntitle = 'A'\n[params]\n{values}\n+++\nB"
    tables = {"g": {"h": 2, "i": [{"j": 3, "k": {"l": "2026-11-20"}}]}}
    answer = client.post("/v1/posts", data=data, content_type="text/markdown")
    assert answer.json["params"] == {"a": True, "b": 10, "c": 1.5, "d": "2024-05-01", "e": ["x", {"f": 16}]} | tables


def test_other_names_go_to_params_if_the_query_asks_for_that(client):
    front_matter = "layout: post\nweight: 3\nempty:\ncover: {url: https://a.example/b, alt: C}\nparams: {a: 1}"
    assert message(post_file(client, front_matter)).startswith("body: line 3: `layout` is unknown")
    cover = {"url": "https://a.example/b", "alt": "C"}
    created = post_file(client, front_matter, "?unknown=params").json
    assert created["cover_image"] == "https://a.example/b"
    assert created["params"] == {"layout": "post", "weight": 3, "cover": cover, "a": 1}
    data = "---\ntitle: A\nlayout: page\n---\n\nB"
    put = client.put("/v1/posts/by-slug/a?unknown=params", data=data, content_type="text/markdown")
    assert put.json["params"] == {"layout": "page"}


@cases(
    ("front_matter", "query", "expected"),
    ("layout: a\nparams: {layout: b}", "?unknown=params", "body: line 3: `layout` is also in `params`"),
    (f"{'a' * 65}: 1", "?unknown=params", "params: a name must be one line of 1 to 64 characters, at least one"),
    ("a: {b: .nan}", "?unknown=params", "params.a.b: must be a finite number (line 3)"),
    ("layout: a", "?unknown=ignored", "unknown: must be params"),
    ("params: a", "", "body: line 3: `params` must be names with values"),
    ("params:\n  a: .inf", "", "params.a: must be a finite number (line 3)"),
)
def test_invalid_params_in_a_file_are_refused_with_the_line(client, front_matter, query, expected):
    assert message(post_file(client, front_matter, query)).startswith(expected)


def test_only_a_file_can_have_other_names(client):
    for method, path in (("POST", "/v1/posts"), ("PUT", "/v1/posts/by-slug/a")):
        answer = client.open(f"{path}?unknown=params", method=method, json=POST)
        assert message(answer) == "unknown: applies only to text/markdown"
    assert message(client.patch("/v1/posts/1?unknown=params", json=POST)).startswith('"unknown": unknown parameter')
