"""Requests to Micropub, and the errors in the responses."""

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
