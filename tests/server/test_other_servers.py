"""The application on gunicorn's own worker with threads, as docs/running.md starts it."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.service import BIN, Server

pytestmark = pytest.mark.slow

GTHREAD = f'exec {BIN}/gunicorn -c /dev/null -b "$HOST:$PORT" -k gthread --threads 4 "blogapi:create_app()"'


def live(threads, number):
    """Take a post through its life cycle; return the statuses of the answers."""
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


def test_many_clients_take_posts_through_their_life_cycle_at_the_same_time(tmp_path):
    with Server(tmp_path / "blog.db", command=("sh", "-c", GTHREAD)) as threads:
        with ThreadPoolExecutor(8) as pool:
            lives = list(pool.map(lambda number: live(threads, number), range(40)))
        assert lives == [[201, 200, 200, 200, 200, 204, 404]] * 40
        assert threads.request("GET", "/v1/posts")[2] == []
        assert len(threads.request("GET", "/v1/trash")[2]) == 20
        assert threads.request("GET", "/v1/tags")[2] == []
        assert "Traceback" not in threads.log
