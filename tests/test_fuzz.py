"""Bodies and queries that nobody thinks of: whatever comes, the contract's statuses and the Error body."""

import json
from collections import Counter

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from blogapi.storage.fold import fold
from blogapi.storage.models import STATUSES

FUZZ = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # one database for all examples is what is wanted
)

texts = st.text(st.characters(codec=None), max_size=50)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5))
posts = st.fixed_dictionaries(
    {"title": texts | values, "content": texts | values},
    optional={
        "excerpt": texts | values,
        "slug": texts | st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True) | values,
        "status": st.sampled_from([*STATUSES, ""]) | values,
        "tags": st.lists(texts, max_size=60) | values,
        "cover_image": texts | texts.map("https://{}".format) | values,
    },
)
bodies = (
    st.binary(max_size=200)
    | values.map(json.dumps).map(str.encode)
    | posts.map(json.dumps).map(str.encode)
    | posts.map(lambda post: json.dumps(post, ensure_ascii=False).encode(errors="surrogatepass"))
)
names = st.sampled_from(["limit", "status", "tag", "before"])
queries = st.lists(st.tuples(names | texts, st.sampled_from(["1", "published", "a"]) | texts), max_size=4)


def keeps_the_contract(answer, *statuses):
    assert answer.status_code in statuses
    assert {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} <= set(answer.headers.keys())
    if answer.status_code >= 400:
        assert answer.content_type == "application/json"
        assert set(answer.json) == {"error", "message"}
        assert answer.json["error"] == answer.status_code
        assert 0 < len(answer.json["message"]) <= 500
        assert answer.json["message"].isprintable()


def is_a_post(post):
    assert {"id", "title", "status", "slug", "content", "tags", "created_at"} <= set(post)
    assert None not in post.values()
    assert post["title"] == post["title"].strip() != ""
    assert len(post["tags"]) <= 50
    assert ("published_at" in post) == (post["status"] == "published")


@FUZZ
@given(body=bodies)
def test_any_body(client, body):
    answer = client.post("/v1/posts", data=body, content_type="application/json")
    keeps_the_contract(answer, 201, 400)
    if answer.status_code == 201:
        is_a_post(answer.json)
        assert client.get("/v1/posts?limit=1").json == [answer.json]


@FUZZ
@given(body=posts)
def test_a_post_that_is_taken_is_what_was_given(client, body):
    answer = client.post("/v1/posts", data=json.dumps(body), content_type="application/json")
    keeps_the_contract(answer, 201, 400)
    if answer.status_code == 201:
        assert answer.json["content"] == body["content"]
        assert answer.json["title"] == body["title"].strip()


@FUZZ
@given(pairs=queries)
def test_any_query(client, pairs):
    answer = client.get("/v1/posts", query_string=[(name, value.encode(errors="replace")) for name, value in pairs])
    keeps_the_contract(answer, 200, 400)


@FUZZ
@given(raw=st.binary(max_size=100))
def test_any_query_as_bytes(client, raw):
    query = raw.decode("latin-1").replace("#", "")
    keeps_the_contract(client.get("/v1/posts", environ_overrides={"QUERY_STRING": query}), 200, 400)


@FUZZ
@given(path=texts)
def test_any_id(client, path):
    path = path.encode(errors="replace").decode()
    answer = client.delete("/", environ_overrides={"PATH_INFO": f"/v1/posts/{path}".encode().decode("latin-1")})
    keeps_the_contract(answer, 204, 404)


@FUZZ
@given(header=texts)
def test_any_authorization(stranger, header):
    header = header.encode(errors="replace").decode("latin-1")
    keeps_the_contract(stranger.get("/v1/posts", environ_overrides={"HTTP_AUTHORIZATION": header}), 401)


changes = st.fixed_dictionaries(
    {},
    optional={
        "title": texts | values,
        "content": texts | values,
        "excerpt": texts | values,
        "slug": texts | values,
        "status": st.sampled_from([*STATUSES, ""]) | values,
        "tags": st.lists(texts, max_size=5) | values,
        "cover_image": texts.map("https://{}".format) | values,
        "published_at": st.datetimes(timezones=st.timezones()).map(lambda time: time.isoformat()) | values,
    },
)


@FUZZ
@given(body=changes, match=st.none() | texts)
def test_any_change(client, body, match):
    client.post("/v1/posts", json={"title": "A", "content": "B", "tags": ["a"]})
    headers = {} if match is None else {"If-Match": match.encode(errors="replace").decode("latin-1").replace("\n", " ")}
    path = f"/v1/posts/{client.get('/v1/posts?limit=1').json[0]['id']}"
    before = client.get(path).json
    answer = client.patch(
        path,
        data=json.dumps(body),
        content_type="application/json",
        headers={k: v.replace("\r", " ") for k, v in headers.items()},
    )
    keeps_the_contract(answer, 200, 400, 412)
    after = client.get(path).json
    assert after == (answer.json if answer.status_code == 200 else before)
    carried = Counter(fold(tag) for post in client.get("/v1/posts?limit=1000").json for tag in post["tags"])
    assert {fold(tag["name"]): tag["posts"] for tag in client.get("/v1/tags").json} == carried


@FUZZ
@given(name=texts, body=st.fixed_dictionaries({"name": texts | values}, optional={"merge": st.booleans() | values}))
def test_any_tag(client, name, body):
    post = client.post(
        "/v1/posts", data=json.dumps({"title": "A", "content": "B", "tags": [name]}), content_type="application/json"
    )
    path = f"/v1/tags/{name.encode(errors='replace').decode()}".encode().decode("latin-1")
    answer = client.patch(
        "/", data=json.dumps(body), content_type="application/json", environ_overrides={"PATH_INFO": path}
    )
    keeps_the_contract(answer, 200, 400, 404, 405)
    if post.status_code == 201:
        tags = client.get(f"/v1/posts/{post.json['id']}").json["tags"]
        assert tags == ([answer.json["name"]] if answer.status_code == 200 else post.json["tags"])
    keeps_the_contract(client.delete("/", environ_overrides={"PATH_INFO": path}), 204, 404, 405)
