"""The paths of requests through the code: the files a reader passes through, except those of the server."""

import sys
from pathlib import Path

import pytest

import blogapi
from tests.api.fixtures import with_key

ROOT = Path(blogapi.__file__).parent
# A POST passes through these files up to `effects.changed`.
GUARDED = "factory api/access api/request storage/keys storage/engine storage/sqlite clock api/limiter api/views"
POST = f"{GUARDED} posts/views posts/schemas api/schemas text storage/database posts/storage"
POST += " posts/publication posts/slugs documents posts/effects"
AFTER = "posts/tags wings/search/index wings/webhooks/storage api/responses"
LIST = f"{GUARDED} api/schemas posts/schemas posts/views posts/lists api/responses"
DELETE = f"{GUARDED} api/operations posts/views storage/database posts/storage documents posts/effects"
DELETE += f" wings/history/storage posts/publication posts/slugs text {AFTER}"


@pytest.fixture
def files(own_app):
    """Send a request; return the files whose functions it calls."""
    client = with_key(own_app())
    for title in "AB":  # The first requests compile queries.
        client.post("/v1/posts", json={"title": title, "content": "B", "tags": ["a"]})
    client.delete("/v1/posts/1")

    def called(method, path, body=None):
        found = {}

        def note(frame, event, argument):
            path = Path(frame.f_code.co_filename)
            if event == "call" and path.is_relative_to(ROOT):
                found.setdefault(str(path.relative_to(ROOT).with_suffix("")))

        sys.setprofile(note)
        try:
            client.open(path, method=method, json=body)
        finally:
            sys.setprofile(None)
        return set(found)

    return called


@pytest.mark.sqlite
@pytest.mark.in_process
@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("POST", "/v1/posts", {"title": "C", "content": "B", "tags": ["a"]}, f"{POST} {AFTER}"),
        ("GET", "/v1/posts?limit=643", None, LIST),  # a limit that no other test has: its query is not cached
        ("DELETE", "/v1/posts/2", None, DELETE),
    ],
)
def test_a_request_passes_through_exactly_these_files(files, method, path, body, expected):
    assert files(method, path, body) == {*expected.split()}
