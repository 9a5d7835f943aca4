"""CORS: which pages from other origins may call the API, and which may not."""

import pytest

from blogapi.api.cors import EXPOSED
from tests.api.fixtures import with_key
from tests.cases import cases
from tests.conftest import NOON, message
from tests.service import Server

PAGE, OTHER = "https://blog.example.org", "http://localhost:3000"
READABLE = {"Access-Control-Allow-Origin": PAGE, "Access-Control-Expose-Headers": EXPOSED}
ASKS = {"Access-Control-Request-Method": "DELETE", "Access-Control-Request-Headers": "authorization"}
PREFLIGHT = {"Origin": PAGE, **ASKS}
OTHER_ORIGINS = ["", "null", "*", "http://blog.example.org", f"{PAGE}:8443", f"{PAGE}.example.net", f"{PAGE},{OTHER}"]
FROM_ELSEWHERE = [{}, *({"Origin": origin} for origin in OTHER_ORIGINS)]


def by_cors(headers):
    return {name: value for name, value in headers.items() if name.startswith("Access-Control-")}


@pytest.fixture
def app(own_app):
    return own_app(cors_origins=frozenset({PAGE, OTHER}))


@cases("path", ["/v1/posts", "/v1/posts/1", "/v1/tags/a/b", "/v1/nothing", "/v1", "/micropub", "/micropub/media"])
def test_a_preflight_is_answered_without_a_key_and_not_counted(stranger, path):
    answer = stranger.options(path, headers=PREFLIGHT)
    assert (answer.status_code, answer.data) == (204, b"")
    assert dict(answer.headers) == READABLE | {
        "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
        "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key",
        "Access-Control-Max-Age": "7200",
        "Cache-Control": "private, no-cache",
        "Vary": "Origin",
        "X-RateLimit-Limit": "1000000",
        "X-RateLimit-Remaining": "1000000",
        "X-RateLimit-Reset": str(NOON + 60),
    }


def test_a_preflight_with_a_key_is_not_counted_either_and_allows_every_method_and_header(app, stranger, client):
    methods = {method for rule in app.url_map.iter_rules() if rule.rule.startswith("/v1") for method in rule.methods}
    answer = client.options("/v1/posts", headers=PREFLIGHT)
    assert client.get("/v1/posts").headers["X-RateLimit-Remaining"] == "999999"
    assert set(answer.headers["Access-Control-Allow-Methods"].split(", ")) == methods
    headers = set(answer.headers["Access-Control-Allow-Headers"].split(", "))
    items = stranger.get("/openapi.json").json["paths"].values()
    parameters = [each for item in items for operation in item.values() for each in operation["parameters"]]
    described = {each["name"] for each in parameters if each["in"] == "header"}
    assert headers == {"Authorization", "Content-Type", *described}


@cases("headers", [*(each | ASKS for each in FROM_ELSEWHERE), {"Origin": PAGE}, ASKS])
def test_options_is_405_unless_it_is_a_preflight_of_an_allowed_page(client, stranger, headers):
    answer = client.options("/v1/posts", headers=headers)
    assert message(answer, 405)
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST"}
    assert message(stranger.options("/v1/posts", headers=headers), 401)


def test_only_the_api_has_preflights(client):
    for path in ("/", "/healthz", "/openapi.json", "/docs"):
        answer = client.options(path, headers=PREFLIGHT)
        assert (answer.status_code, by_cors(answer.headers)) == (405, {})
        found = by_cors(client.get(path, headers={"Origin": PAGE}).headers)
        assert found == ({"Access-Control-Allow-Origin": "*"} if path == "/openapi.json" else {})
    assert client.options("/v10/posts", headers=PREFLIGHT).status_code == 404


def test_an_allowed_page_can_read_every_answer(own_app):
    client = with_key(own_app(cors_origins=frozenset({PAGE, OTHER}), rate_limit=9))
    for status, method, path, options in (
        (201, "POST", "/v1/posts", {"json": {"title": "A", "content": "B", "status": "published"}}),
        (200, "GET", "/v1/posts?limit=1", {}),
        (200, "GET", "/v1/posts/1", {}),
        (200, "HEAD", "/v1/posts/1", {}),
        (304, "GET", "/v1/posts/1", {"headers": {"If-None-Match": "*"}}),
        (415, "POST", "/v1/posts", {"data": b"{"}),
        (404, "GET", "/v1/nothing", {}),
        (405, "PUT", "/v1/posts", {}),
        (204, "DELETE", "/v1/posts/1", {}),
        (429, "GET", "/v1/posts", {}),
        (401, "GET", "/v1/posts", {"headers": {"Authorization": "Bearer no"}}),
    ):
        headers = {"Origin": PAGE} | options.pop("headers", {})
        answer = client.open(path, method=method, headers=headers, **options)
        assert (answer.status_code, by_cors(answer.headers)) == (status, READABLE)
        reads_post = path == "/v1/posts/1" and method != "DELETE"
        assert answer.headers.getlist("Vary") == ["Accept, Origin" if reads_post else "Origin"]
    assert client.get("/v1/posts", headers={"Origin": OTHER}).headers["Access-Control-Allow-Origin"] == OTHER


@cases("headers", FROM_ELSEWHERE)
def test_an_answer_to_another_origin_has_only_the_vary_header(client, headers):
    answer = client.get("/v1/posts", headers=headers)
    assert (answer.status_code, by_cors(answer.headers), answer.headers["Vary"]) == (200, {}, "Origin")


def test_if_all_origins_are_allowed_answers_do_not_depend_on_the_origin(own_app):
    open_client = with_key(own_app(cors_origins=frozenset("*")))
    for headers in ({}, {"Origin": PAGE}, {"Origin": "null"}):
        answer = open_client.get("/v1/posts", headers=headers)
        assert by_cors(answer.headers) == READABLE | {"Access-Control-Allow-Origin": "*"}
        assert "Vary" not in answer.headers
    answer = open_client.options("/v1/posts", headers={"Origin": "null", **ASKS})
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (204, "*")
    assert open_client.options("/v1/posts", headers=ASKS).status_code == 405


def test_without_the_setting_nothing_changes(own_app):
    client = with_key(own_app())
    for method, path in (("GET", "/v1/posts"), ("GET", "/v1/posts/1"), ("OPTIONS", "/v1/posts"), ("GET", "/healthz")):
        answer, plain = (client.open(path, method=method, headers=headers) for headers in (PREFLIGHT, {}))
        assert answer.status_code == plain.status_code
        assert [name for name, _ in answer.headers] == [name for name, _ in plain.headers]
        assert by_cors(answer.headers) == {}
    assert client.options("/v1/posts", headers=PREFLIGHT).status_code == 405


# On the real server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    database = tmp_path_factory.mktemp("cors") / "blog.db"
    with Server(database, measured=True, BLOGAPI_CORS_ORIGINS=f"{PAGE},{OTHER}") as service:
        yield service


@cases(
    ("fields", "status"),
    (["Transfer-Encoding: x"], 501),
    ([f"If-None-Match: {'x' * 3000}"], 431),
    (["Content-Type: application/json", "Content-Length: 5000000"], 413),
)
def test_an_allowed_page_can_read_why_the_server_refuses_a_request(server, fields, status):
    for origin, expected in ((PAGE, READABLE), ("https://example.net", {})):
        head = server.head("POST /v1/posts HTTP/1.1", f"Origin: {origin}", *fields)
        answer, headers, body = server.raw(head)
        assert (answer, body["error"]) == (status, status)
        assert (by_cors(headers), headers["Vary"]) == (expected, "Origin")


def test_no_page_can_read_why_the_server_refuses_a_request_outside_the_api(server):
    for path, expected in (("/healthz", {}), ("/settings/keys", {}), ("/v1", READABLE)):
        head = server.head(f"POST {path} HTTP/1.1", f"Origin: {PAGE}", "Transfer-Encoding: x")
        status, headers, _ = server.raw(head)
        assert (status, by_cors(headers)) == (501, expected)


@pytest.mark.slow
def test_if_the_header_cannot_be_read_all_pages_or_none_can_read_why(tmp_path, server):
    line = f"GET /{'x' * 9000} HTTP/1.1"
    status, headers, _ = server.raw(server.head(line, f"Origin: {PAGE}"))
    assert (status, by_cors(headers), headers["Vary"]) == (414, {}, "Origin")
    with Server(tmp_path / "blog.db", BLOGAPI_CORS_ORIGINS="*") as service:
        status, headers, _ = service.raw(service.head(line))
    assert (status, by_cors(headers)) == (414, READABLE | {"Access-Control-Allow-Origin": "*"})
