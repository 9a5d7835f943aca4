"""The service under a path of another site: BLOGAPI_URL=https://example.org/blog."""

import re

import pytest

from blogapi.config import Config
from tests.cases import cases
from tests.conftest import message


@pytest.fixture
def config(tmp_path):
    return Config(database=tmp_path / "blog.db", url="https://example.org/blog", rate_limit=1_000_000)


@pytest.mark.parametrize("prefix", ["", "/blog"])
def test_every_address_has_the_path_whether_the_proxy_removes_it_or_not(client, stranger, prefix):
    for number in range(2):
        answer = client.post(f"{prefix}/v1/posts", json={"title": "A", "content": "B", "tags": [f"t{number}"]})
        assert answer.headers["Location"] == f"/blog/v1/posts/{answer.json['id']}"
    assert client.get(f"{prefix}/v1/posts?limit=1").headers["Link"].startswith("</blog/v1/posts?limit=1&before=2>")
    assert client.get(f"{prefix}/v1/tags?limit=1").headers["Link"].startswith("</blog/v1/tags?limit=1&after=t0>")
    webhook = client.post(f"{prefix}/v1/webhooks", json={"url": "http://203.0.114.1"})
    assert webhook.headers["Location"] == "/blog/v1/webhooks/1"
    assert message(client.get(f"{prefix}/v1/posts/hello"), 404).endswith(" /blog/v1/posts/by-slug/hello")
    assert stranger.get(f"{prefix}/openapi.json").json["servers"][0]["url"] == "https://example.org/blog"
    assert all(address.startswith("/blog/") for address in stranger.get(f"{prefix}/").json.values())
    to_browser = stranger.get(f"{prefix}/", headers={"Accept": "text/html"})
    assert to_browser.headers["Location"] == "/blog/docs"


def test_the_page_loads_its_files_below_the_path(stranger):
    assert stranger.get("/blog/docs/").headers["Location"] == "/blog/docs"
    page = stranger.get("/blog/docs").text
    for name in re.findall('(?:src|href)="(docs/[^"]+)"', page):
        assert stranger.get(f"/blog/{name}").status_code == 200
    assert stranger.get("/blog").status_code == 200


@cases("path", ["/blog/v1/posts", "/blog/blog/v1/posts", "/blogs/v1/posts", "/blog//v1/posts"])
def test_the_path_does_not_let_anything_through_without_a_key(stranger, path):
    assert stranger.get(path).status_code == 401


@pytest.mark.parametrize("start", ["", "/", "/blog", "/blog/", "https://example.org", "https://example.org/blog/"])
@pytest.mark.in_process
def test_here_too_a_tag_can_contain_slashes_and_a_post_cannot(client, start):
    client.post("/v1/posts", json={"title": "A", "content": "B", "tags": ["a/b"]})
    path = start.removeprefix("https://example.org")

    def get(target, decoded):
        return client.get("/", environ_overrides={"RAW_URI": start + target, "PATH_INFO": path + decoded})

    assert get("/v1/tags/a%2Fb", "/v1/tags/a/b").json == {"name": "a/b", "posts": 1}
    assert get("/v1/posts%2F1", "/v1/posts/1").status_code == 404
    assert get("/v1%2ftags/a%2Fb", "/v1/tags/a/b").status_code == 404
    assert get("/v1/tags%2fa", "/v1/tags/a").status_code == 404
