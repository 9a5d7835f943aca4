"""Even the worst input takes time in proportion to its length."""

import json

import pytest

from tests.cases import cases
from tests.service import slowness
from tests.timing import seconds

pytestmark = pytest.mark.in_process

POST = {"title": "A", "content": "B"}
REQUESTS = {
    "a cookie with a gap": lambda size: ("/settings", {"Cookie": f"a={' ' * size}b c;"}),
    "many cookies": lambda size: ("/settings", {"Cookie": "a=b;" * (size // 4)}),
    "a key after many spaces": lambda size: ("/v1/posts", {"Authorization": f"Bearer{' ' * size}x"}),
    "a slug": lambda size: (f"/v1/posts/by-slug/{'a-' * (size // 2)}", {}),
    "a tag": lambda size: (f"/v1/tags/{'a%20' * (size // 4)}", {}),
    "a query": lambda size: (f"/v1/posts?{'a=b&' * (size // 4)}", {}),
    "a page size": lambda size: (f"/v1/posts?limit={'1' * size}x", {}),
    "fields": lambda size: (f"/v1/posts?fields={'id,' * (size // 3)}", {}),
    "a cursor": lambda size: (f"/v1/posts?sort=published_at&before={'_1' * (size // 2)}", {}),
    "words": lambda size: (f"/v1/posts?q={'%22a*' * (size // 5)}", {}),
}
BODIES = {
    "a URL of users": lambda size: POST | {"cover_image": f"http://{'a@' * (size // 2)}"},
    "a URL of ports": lambda size: POST | {"cover_image": f"http://a{':1' * (size // 2)}"},
    "a URL with a space": lambda size: POST | {"cover_image": f"http://{'a' * size} "},
    "a slug": lambda size: POST | {"slug": "a-" * (size // 2)},
    "a time": lambda size: POST | {"published_at": f"2026-11-20T10:10:00.{'0' * size}Z"},
    "spaces in a title": lambda size: POST | {"title": " " * size},
    "invisible content": lambda size: POST | {"content": "\u200b" * size},
    "a control character at the end": lambda size: POST | {"content": "a" * size + "\0"},
    "tags": lambda size: POST | {"tags": ["a"] * (size // 4)},
    "fields": lambda size: POST | {f"{number}": 0 for number in range(size // 8)},
}
TEXTS = {
    "brackets": lambda size: "[" * size,
    "objects": lambda size: '{"a":' * (size // 5),
    "quotes": lambda size: '{"' + '\\"' * (size // 2),
    "strings": lambda size: '["' + '","' * (size // 3),
    "digits": lambda size: '{"a":' + "1" * size,
}


def get(worst):
    def send(client, size):
        path, headers = worst(size)
        return client.get(path, headers=headers)

    return send


def get_absolute(part):
    def send(client, size):
        target = f"http://{part * (size // len(part))}"
        return client.get("/v1/posts", environ_overrides={"RAW_URI": target})

    return send


def post(worst, dump=json.dumps):
    return lambda client, size: client.post("/v1/posts", data=dump(worst(size)), content_type="application/json")


SENT = {
    **{f"{name} in a header or query": (get(worst), 8_000) for name, worst in REQUESTS.items()},
    **{f"{part} in an absolute target": (get_absolute(part), 8_000) for part in ("a", "a/", "%2", "/", "+")},
    **{f"{name} in a body": (post(worst), 100_000) for name, worst in BODIES.items()},
    **{f"{name} in broken JSON": (post(worst, dump=str), 200_000) for name, worst in TEXTS.items()},
}


@pytest.mark.sqlite
@cases(("send", "size"), SENT.values())
def test_twice_the_size_takes_at_most_twice_the_time_without_the_fixed_cost_of_a_request(client, send, size):
    """Most of the time is spent in C, where steps cannot be counted. A busy machine spoils only some comparisons."""

    def run(size):
        assert send(client, size).status_code in (200, 201, 400, 401, 403, 404)

    def is_linear():
        anyway = seconds(run, 8)
        once = max(seconds(run, size) - anyway, 0.0005)
        return seconds(run, 2 * size) - anyway < 3 * once

    assert any(is_linear() for _ in range(5))


@pytest.mark.sqlite
@cases("header", ["Accept", "Accept-Encoding", "If-Match", "If-None-Match", "Content-Type"])
@cases("part", [",", ";q=", '"', " ", "a/b;", 'W/"a",', "=\\"])
def test_a_header_that_werkzeug_parses_takes_at_most_ten_milliseconds(client, header, part):
    """Werkzeug takes quadratic time for some of these, so the server accepts only 2,048 bytes of them."""
    worst = (part * 2048)[:2040]

    def run(size):
        client.post("/v1/posts", headers={"Accept": "text/markdown", header: f"text/{worst[:size]}"}, data=b"{}")
        client.get("/docs", headers={header: f"text/{worst[:size]}"})

    assert any(seconds(run, 2040) - seconds(run, 0) < 0.01 * slowness() for _ in range(5))
