"""Requests to Micropub, the errors in the responses, and fixtures for the posts that it creates and changes."""

import pytest

URL = "http://127.0.0.1:8000"
PATH, MEDIA = "/micropub", "/micropub/media"
URLENCODED = "application/x-www-form-urlencoded"
PLANNED = "must not be in the future unless post-status is scheduled"


def error(answer, status, word):
    """The error's description in a response."""
    assert (answer.status_code, answer.json["error"]) == (status, word)
    assert sorted(answer.json) == ["error", "error_description"]
    return answer.json["error_description"]


def bad(answer):
    return error(answer, 400, "invalid_request")


def query(client, **parameters):
    return client.get(PATH, query_string=parameters)


def entry(**properties):
    return {"type": ["h-entry"], "properties": properties}


def form(**parts):
    """A multipart form. A file is its name and bytes. Flask's client would leave files of large forms open."""
    lines = []
    for name, values in parts.items():
        for value in values if isinstance(values, list) else [values]:
            file, content = value if isinstance(value, tuple) else (None, value)
            content = content.encode() if isinstance(content, str) else content
            disposition = f'form-data; name="{name}"' + ("" if file is None else f'; filename="{file}"')
            lines.append(f"--b\r\nContent-Disposition: {disposition}\r\n\r\n".encode() + content + b"\r\n")
    return {"data": b"".join([*lines, b"--b--\r\n"]), "content_type": "multipart/form-data; boundary=b"}


@pytest.fixture
def create(client):
    """Create a post with a form, or with JSON; return the post, and the names that were ignored."""

    def create(data=None, **options):
        answer = client.post(PATH, data=data, **options)
        assert answer.status_code == 201, answer.json
        assert answer.headers["Location"] == answer.json["url"]
        path = answer.headers["Location"].removeprefix(URL)
        assert answer.json == {"url": URL + path, "ignored": answer.json["ignored"]}
        return client.get(path).json, answer.json["ignored"]

    return create


@pytest.fixture
def post(client, clock):
    fields = {"title": "A", "content": "B", "tags": ["a", "b"], "excerpt": "C", "status": "published"}
    client.post("/v1/posts", json=fields)
    clock.now += 1

    def get():
        return client.get("/v1/posts/1").json

    return get
