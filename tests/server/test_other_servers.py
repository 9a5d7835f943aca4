"""The application on gunicorn's own worker with threads, as docs/running.md starts it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.service import BIN, Server

pytestmark = pytest.mark.slow

GTHREAD = f'exec {BIN}/gunicorn -c /dev/null -b "$HOST:$PORT" -k gthread --threads 4 "blogapi:create_app()"'


@pytest.fixture(scope="module")
def threads(tmp_path_factory):
    """A server with four threads."""
    with Server(tmp_path_factory.mktemp("threads") / "blog.db", command=("sh", "-c", GTHREAD)) as server:
        yield server


def live(threads, number):
    """Take a post through its life; return the statuses of the answers."""
    slug = f"/v1/posts/by-slug/post-{number}"
    body = {"title": f"Post {number}", "content": "Fog.", "tags": ["a", f"b{number}"], "status": "published"}
    return [
        threads.request("POST", "/v1/posts", body)[0],
        threads.request("GET", "/v1/posts?q=fog&tag=a")[0],
        threads.request("PATCH", slug, {"content": "Sun."})[0],
        threads.request("PATCH", f"/v1/tags/b{number}", {"name": f"c{number}"})[0],
        threads.request("GET", slug + "/revisions")[0],
        threads.request("DELETE", slug if number % 2 else slug + "?permanent=true")[0],
        threads.request("GET", slug)[0],
    ]


def test_many_clients_take_posts_through_their_life_at_the_same_time(threads):
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: live(threads, number), range(40)))
    assert found == [[201, 200, 200, 200, 200, 204, 404]] * 40
    assert threads.request("GET", "/v1/posts")[2] == []
    assert len(threads.request("GET", "/v1/trash")[2]) == 20
    assert threads.request("GET", "/v1/tags")[2] == []
    assert "Traceback" not in threads.log


def test_errors_and_bodies_are_those_of_our_own_server(threads):
    status, headers, body = threads.request("POST", "/v1/posts", {"title": "A", "nope": 1})
    assert (status, body["message"].partition(";")[0]) == (400, "content: missing")
    assert headers["X-RateLimit-Limit"] == "1000000"
    assert threads.request("POST", "/v1/posts", "{", Content_Type="application/json")[0] == 400
    threads.key, key = "wrong", threads.key
    assert threads.request("GET", "/v1/posts")[0] == 401
    threads.key = key
