"""The client, whose service may be broken or hostile, limits what it waits for, reads and keeps."""

import json
import time
from contextlib import contextmanager, suppress
from itertools import count

import pytest

from blogapi.wings.sync import client
from blogapi.wings.sync.client import MAX_ATTEMPTS, ApiResponse, Remote, RemoteError, date_of
from tests.receiver import Receiver

KEY = b'{"name": "a", "scope": "full"}'
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TIMES = dict.fromkeys(("created_at", "updated_at"), "2026-01-01T00:00:00Z")


def response(body, *headers, status=b"200 OK"):
    return b"\r\n".join((b"HTTP/1.1 " + status, *headers, b"Content-Length: %d" % len(body), b"", body))


@contextmanager
def service(answer, repeated=b"", pause=0.0):
    """Serve `GET /v1/key`, and for all else `answer`, followed by `repeated` until the client goes; yield the address.

    `answer` can be a function of the number of the request.
    """
    counted = count()

    def respond(handler):
        is_key = handler.path == "/v1/key"
        data = answer(next(counted)) if callable(answer) else answer
        handler.close_connection = bool(repeated) and not is_key
        with suppress(OSError):
            handler.connection.sendall(response(KEY) if is_key else data)
            while repeated and not is_key:
                handler.connection.sendall(repeated)
                time.sleep(pause)

    with Receiver() as receiver:
        receiver.answer = respond
        yield f"http://127.0.0.1:{receiver.port}"


def refused(address, waits=None, seconds=client.MAX_SECONDS):
    """Send a request that fails, after another; return the reason."""
    remote = Remote(address, "blog_x", lambda line: None, [].append if waits is None else waits.append)
    _ = remote.scope
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "MAX_SECONDS", seconds)
        with pytest.raises(RemoteError) as error:
            list(remote.posts())
    return str(error.value).removeprefix(address).strip()


def test_an_answer_that_never_ends_is_given_up_at_the_deadline_although_bytes_arrive():
    for name, (beginning, repeated, pause) in {
        "interim responses": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0),
        "a header, byte by byte": (b"HTTP/1.1 200 OK\r\nX: ", b"a", 0.01),
        "a body, byte by byte": (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n[", b" ", 0.01),
        "trailers": (CHUNKED + b"2\r\n[]\r\n0\r\n", b"X: y\r\n" * 100, 0),
    }.items():
        with service(beginning, repeated, pause) as address:
            begun = time.monotonic()
            assert refused(address, seconds=0.3) == "is taking too long to respond", name
            assert time.monotonic() - begun < 10, name


def test_endless_headers_lines_and_pages_are_refused():
    post = json.dumps([{"id": "1", "title": "A", "slug": "a", "content": "B", "status": "draft", "tags": []} | TIMES])

    def page(number):
        return response(post.encode(), b'Link: </v1/posts?before=%d>; rel="next"' % number)

    for answer, repeated, said in (
        (b"HTTP/1.1 200 OK\r\n", b"X: " + b"a" * 60_000 + b"\r\n", "got more than 100 headers"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"a" * 60_000, "got more than 65536 bytes when reading header line"),
        (b"", b"a" * 60_000, "got more than 65536 bytes when reading status line"),
        (CHUNKED + b"1;", b"a" * 60_000, "got more than 65536 bytes when reading chunk size"),
        (page, b"", "/v1/posts never ends"),
        (response(b"[%s]" % b",".join([b"1"] * 1001)), b"", "/v1/posts never ends"),
    ):
        with service(answer, repeated) as address:
            assert said in refused(address), said


def test_waits_grow_from_a_second_and_end_after_an_hour_at_the_rate_limit_or_after_some_failures():
    limit, failure = (
        (b"429 Too Many Requests", "the rate limit is reached"),
        (b"503 Unavailable", "returned status 503"),
    )
    for (status, said), asked, expected in (
        (limit, b"0", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1553]),
        (limit, b"999999999", [3600]),
        (failure, b"0", [2**number for number in range(MAX_ATTEMPTS - 1)]),
    ):
        waits = []
        with service(response(b"{}", b"Retry-After: " + asked, status=status)) as address:
            assert refused(address, waits) == said
        assert waits == expected


def test_an_invalid_date_is_ignored():
    dates = "Mon, 01 Jan 2024 00:00:00 +99999999999999", "Mon, 01 Jan 9999 00:00:00 GMT", "9" * 5000, ""
    assert [date_of(ApiResponse(200, {"Date": date}, b"")) for date in dates] == [0] * 4
    assert date_of(ApiResponse(200, {"Date": "Thu, 01 Jan 1970 00:01:00 GMT"}, b"")) == 0
    assert date_of(ApiResponse(200, {"Date": "Mon, 01 Jan 2024 00:00:00 GMT"}, b"")) == 1_704_067_200


def test_invalid_images_and_revisions_are_refused():
    image = {"id": "0" * 32, "url": "/images/a.png"}
    version = {"revision": 1, "post": {"updated_at": "2026-01-01T00:00:00Z"}, "replaced_at": "2026-01-01T00:00:00Z"}
    images = {"id": "../a"}, {"url": "/" + "a" * 1000}, {"url": "\ud800"}, {"id": None}, {"url": 1}
    versions = {"revision": float("inf")}, {"revision": "one"}, {"revision": None}, {"post": []}, {"post": {}}
    for wrong, ask, said in (
        *((image | each, Remote.images, "sent an invalid image") for each in images),
        *((version | each, lambda remote: remote.revisions("1"), "is not the URL of a blogapi") for each in versions),
    ):
        with service(response(json.dumps([wrong]).encode())) as address, pytest.raises(RemoteError, match=said):
            ask(Remote(address, "blog_x", print))


def test_an_invalid_etag_is_not_kept():
    post = json.dumps({"id": "1", "title": "A", "slug": "a", "content": "B", "status": "draft", "tags": []} | TIMES)
    for etag, kept in ((b'"abc"', '"abc"'), (b'W/"a"', 'W/"a"'), (b'"%s"' % (b"a" * 60_000), ""), (b"abc", "")):
        with service(response(post.encode(), b"ETag: " + etag)) as address:
            fetched = Remote(address, "blog_x", print).post("1")
        assert fetched
        assert fetched["etag"] == kept
