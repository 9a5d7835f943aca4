"""Send bodies and queries that nobody would think of. Each status is documented, and each error has the Error body."""

import json
import re
import subprocess
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogapi.documents import STATUSES
from tests.invariants import sound_posts
from tests.service import BIN, CHECKOUT, Server

texts = st.text(st.characters(codec=None), max_size=50)
words = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S"]), min_size=1, max_size=50)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(texts, inner, max_size=5))
valid_fields = {
    "excerpt": words,
    "status": st.sampled_from(["published", "draft"]),
    "tags": st.lists(words, max_size=5),
    "cover_image": st.just("https://example.org/ä.png?x=1#y"),
}
any_fields = {
    "excerpt": texts | values,
    "slug": texts | st.from_regex(r"[a-z0-9-]{1,20}", fullmatch=True) | values,
    "status": st.sampled_from([*STATUSES, ""]) | values,
    "tags": st.lists(texts, max_size=60) | values,
    "cover_image": texts | texts.map("https://{}".format) | values,
}
any_words = {"title": texts | values, "content": texts | values}
posts = st.fixed_dictionaries({"title": words, "content": words}, optional=valid_fields)
posts |= st.fixed_dictionaries(any_words, optional=any_fields)
bodies = (
    st.binary(max_size=200)
    | values.map(json.dumps).map(str.encode)
    | posts.map(json.dumps).map(str.encode)
    | posts.map(lambda post: json.dumps(post, ensure_ascii=False).encode(errors="surrogatepass"))
)
names = st.sampled_from(["limit", "status", "tag", "before"])
ids = texts | st.just("ID") | st.sampled_from(["ID", "0ID", "ID/", " ID", "+ID", "ID.0", "ID\n", "/ID"])
valid_pairs = st.sampled_from([("limit", "1"), ("status", "published"), ("tag", "a"), ("before", "1")])
queries = st.lists(valid_pairs, unique=True) | st.lists(
    st.tuples(names | texts, st.sampled_from(["1", "published", "a"]) | texts), max_size=4
)
encoded = queries.map(lambda pairs: urlencode(pairs, errors="replace"))


@pytest.fixture
def judge():
    """Check that a response follows the contract. At the end, each possible status must have occurred."""
    possible, seen = set(), set()

    def judge(answer, *statuses):
        possible.update(statuses)
        seen.add(answer.status_code)
        assert answer.status_code in statuses
        assert {"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"} <= set(answer.headers.keys())
        if answer.status_code >= 400:
            assert answer.content_type == "application/json"
            assert set(answer.json) == {"error", "message"}
            assert answer.json["error"] == answer.status_code
            assert 0 < len(answer.json["message"]) <= 500
            assert answer.json["message"].isprintable()

    yield judge
    assert seen == possible


@given(body=bodies)
def test_any_body(client, judge, body):
    answer = client.post("/v1/posts", data=body, content_type="application/json")
    judge(answer, 201, 400)
    if answer.status_code == 201:
        post, sent = answer.json, json.loads(body)
        assert {"id", "title", "status", "slug", "content", "tags", "created_at"} <= set(post)
        assert None not in post.values()
        assert (post["title"], post["content"]) == (sent["title"].strip(), sent["content"])
        assert len(post["tags"]) <= 50
        assert ("published_at" in post) == (post["status"] == "published")
        assert client.get("/v1/posts?limit=1").json == [answer.json]


@given(query=encoded | st.binary(max_size=100).map(lambda raw: raw.decode("latin-1")))
def test_any_query(client, judge, query):
    judge(client.get("/v1/posts", environ_overrides={"QUERY_STRING": query.replace("#", "")}), 200, 400)


@given(path=ids)
@pytest.mark.in_process
def test_any_id(client, judge, path):
    path = path.encode(errors="replace").decode()
    post = client.post("/v1/posts", json={"title": "A", "content": "B"}).json
    path = path.replace("ID", post["id"])
    answer = client.delete("/", environ_overrides={"PATH_INFO": f"/v1/posts/{path}".encode().decode("latin-1")})
    judge(answer, 204, 404)
    assert (answer.status_code == 204) == (path == post["id"])
    assert client.delete(f"/v1/posts/{post['id']}").status_code == (404 if path == post["id"] else 204)


@given(header=texts)
@pytest.mark.in_process
def test_any_authorization(stranger, judge, header):
    header = header.encode(errors="replace").decode("latin-1")
    judge(stranger.get("/v1/posts", environ_overrides={"HTTP_AUTHORIZATION": header}), 401)


schedules = st.just({"status": "scheduled", "published_at": "2099-01-01T07:00:00Z"})
dates = st.sampled_from(["2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z"])
valid_changes = st.fixed_dictionaries({}, optional={"title": words, "published_at": dates} | valid_fields)
times = st.datetimes(timezones=st.timezones()).map(lambda time: time.isoformat())
any_changes = st.fixed_dictionaries({}, optional=any_words | any_fields | {"published_at": times | values})
changes = schedules | valid_changes | any_changes


@pytest.mark.in_process  # Other servers may refuse such an If-Match.
@given(bodies=st.lists(changes, min_size=1, max_size=3), match=st.none() | texts | st.just("*"))
def test_any_changes(client, config, judge, bodies, match):
    match = match and re.sub("[\r\n]", " ", match.encode(errors="replace").decode("latin-1"))
    headers = {} if match is None else {"If-Match": match}
    post = client.post("/v1/posts", json={"title": "A", "content": "B", "tags": ["a"]}).json
    path = f"/v1/posts/{post['id']}"
    for body in bodies:
        answer = client.patch(path, data=json.dumps(body), content_type="application/json", headers=headers)
        judge(answer, 200, 400, 412)
        post = answer.json if answer.status_code == 200 else post
        assert client.get(path).json == sound_posts(config.database)[post["id"]] == post
    if int(post["id"]) % 20:  # Some stay.
        client.delete(path)


@given(
    name=texts | words,
    body=st.fixed_dictionaries({"name": words})
    | st.fixed_dictionaries({"name": texts | values}, optional={"merge": st.booleans() | values}),
)
@pytest.mark.in_process
def test_any_tag(client, config, judge, name, body):
    json_type = {"content_type": "application/json"}
    post = client.post("/v1/posts", data=json.dumps({"title": "A", "content": "B", "tags": [name]}), **json_type)
    path = f"/v1/tags/{name.encode(errors='replace').decode()}".encode().decode("latin-1")
    answer = client.patch("/", data=json.dumps(body), environ_overrides={"PATH_INFO": path}, **json_type)
    judge(answer, 200, 400, 404)
    if post.status_code == 201:
        tags = client.get(f"/v1/posts/{post.json['id']}").json["tags"]
        assert tags == ([answer.json["name"]] if answer.status_code == 200 else post.json["tags"])
    sound_posts(config.database)
    judge(client.delete("/", environ_overrides={"PATH_INFO": path}), 204, 404)
    sound_posts(config.database)
    if post.status_code == 201 and int(post.json["id"]) % 20:  # Some stay.
        client.delete(f"/v1/posts/{post.json['id']}")


@pytest.mark.slow
def test_it_matches_the_running_service(tmp_path, scale):
    """Schemathesis with all its checks: positive and negative data, and sequences of operations."""
    with Server(tmp_path / "blog.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
        command = [BIN / "schemathesis", "--config-file", CHECKOUT / "tests/schemathesis.toml", "run"]
        command += [f"http://127.0.0.1:{service.port}/openapi.json"]
        command += ["--checks", "all", "--max-examples", str(2 * scale), "--seed", "7"]
        # Each request looks for proxies in the whole environment.
        environ = {"SCHEMATHESIS_HOOKS": "tests.schemathesis_hooks", "PYTHONPATH": CHECKOUT, "KEY": service.key}
        environ |= {"HOME": tmp_path, "HYPOTHESIS_STORAGE_DIRECTORY": CHECKOUT / ".hypothesis"}
        ended = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
