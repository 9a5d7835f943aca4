"""Push and pull: images, keys, and services that fail or are hostile."""

import fcntl
import json
import os
import ssl
from contextlib import suppress

import pytest

from tests.cases import cases
from tests.images.pictures import jpeg, png
from tests.receiver import Receiver, make_certificate
from tests.service import add_key
from tests.sync.conftest import contents, counts, edit

# Images


def test_images_are_uploaded_and_come_back_as_files(run, folder, tmp_path, there, change, blog):
    here = folder(
        a="---\ncover: loaf.png\n---\n# A\n\n![loaf](<loaf.png>)\n![[loaf.png|A loaf]]\n\n![lost](lost.png)\nEnd.\n"
    )
    (here / "loaf.png").write_bytes(png())
    status, lines = run("push", here)
    assert (status, lines[0]) == (0, "created a.md: images not found: lost.png")
    post = there()["a"]
    address = blog.request("GET", "/v1/images")[2][0]["url"]
    assert post["cover_image"] == address
    assert post["content"].count(address) == 2
    assert run("push", here) == (0, [counts(unchanged=1)])
    change("a", content=post["content"].replace("End.", "The end.").replace("![loaf]", "![rye]"))
    before = contents(here)["a.md"].decode()
    assert run("pull", here)[1][0] == "updated a.md"
    after = before.replace("End.", "The end.").replace("![loaf](<loaf.png>)", "![rye](<loaf.png>)")
    assert (contents(here)["a.md"].decode(), run("push", here)) == (after, (0, [counts(unchanged=1)]))
    other = tmp_path / "other"
    run("pull", other, "--images")
    name = f"images/{address.rpartition('/')[2]}"
    assert contents(other).keys() == {"a.md", name}
    assert (contents(other)["a.md"].decode().count(name), address.encode() in contents(other)["a.md"]) == (3, False)
    assert run("push", other) == (0, [counts(unchanged=1)])
    (here / "loaf.png").write_bytes(jpeg())
    assert run("push", here)[1][0].startswith("updated a.md")
    assert there()["a"]["cover_image"] != address


def test_a_post_keeps_its_images_if_only_their_files_are_gone(run, folder, there):
    here = folder(a="# A\n\n![loaf](loaf.png) ![lost](lost.png)\n")
    (here / "loaf.png").write_bytes(png())
    run("push", here)
    before = there()["a"]["content"]
    (here / "loaf.png").unlink()
    failed = "a.md: images not found: loaf.png, lost.png; push --overwrite sends the file without them"
    for command in (("push", "--dry-run"), ("push",), ("push",)):  # each time, as the file can be read
        status, lines = run(*command, here)
        assert (status, lines[0]) == (1, f"failed {failed}"), command
    assert there()["a"]["content"] == before
    assert run("push", here, "--overwrite")[0] == 0
    assert there()["a"]["content"] == "# A\n\n![loaf](loaf.png) ![lost](lost.png)\n"


# Keys and services


@pytest.mark.parametrize(("scope", "may_delete"), [("read-only", True), ("published-only", False)])
def test_keys_with_fewer_permissions_can_pull_and_with_published_no_key_pulls_new_drafts(
    run, folder, tmp_path, blog, change, scope, may_delete
):
    run("push", folder(a="# A\n", b="---\nstatus: published\n---\n# B\n"))
    assert run("pull", tmp_path / "published", "--published")[1] == ["created b.md", counts(created=1)]
    key = blog.write(add_key, f"pulls {scope}", scope)
    edit(tmp_path / "folder/a.md", "# A", "# A, newer")
    refused = [f"this key is {scope}: a push needs a key that may write"]
    assert run("push", tmp_path / "folder", key=key) == (1, refused)
    assert run("pull", tmp_path / "other", key=key)[1][-1] == counts(created=2 if may_delete else 1)
    assert run("pull", tmp_path / "other", "--delete", key=key)[0] == (not may_delete)
    change("b", status="draft")
    blog.request("PUT", "/v1/posts/by-slug/c", {"title": "C", "content": "C", "status": "published"})
    assert "created c.md" in run("pull", tmp_path / "folder", key=key)[1]  # It sees none of the other posts, perhaps.


def test_the_address_and_the_key_are_checked_before_anything_else(run, folder, blog):
    here = folder(a="# A\n")
    assert run("push", here, key="blog_" + "x" * 43)[1][0].startswith("Authorization: the API key is unknown")
    assert run("push", here, to="blog.example.org")[1][0].startswith("'blog.example.org' must be the URL")
    other = f"http://127.0.0.1:{blog.port}/v2"
    assert run("push", here, to=other)[1] == [f"{other} is not the URL of a blogapi service (1.2 or newer)"]
    assert run("push", here, to="http://127.0.0.1:1")[1][0].startswith("http://127.0.0.1:1 is not responding")
    assert not (here / ".blogapi.json").exists()
    for options in ({"key": "blog_" + "x" * 43}, {"to": other}, {"to": "http://127.0.0.1:1"}):
        assert (run("pull", here.parent / "new" / "folder", **options)[0], (here.parent / "new").exists()) == (1, False)


def test_one_command_at_a_time_works_in_a_folder(run, folder, blog):
    here = folder(a="# A\n")
    file = os.open(here, os.O_RDONLY)
    fcntl.flock(file, fcntl.LOCK_EX)
    assert run("push", here) == (1, [f"another push or pull of {here} is running"])
    os.close(file)
    assert run("push", here)[0] == 0


# Services that are hostile, or not services at all

POST = {"id": "1", "title": "A", "slug": "a", "content": "B", "status": "draft", "tags": []}
POST |= dict.fromkeys(("created_at", "updated_at"), "2026-01-01T00:00:00Z")


@pytest.fixture
def hostile():
    """A service that gives each path its responses one after the other, and repeats the last one."""
    answers = {"/v1/key": [(200, {}, b'{"name": "a", "scope": "full"}')]}

    def respond(handler):
        left = answers.get(handler.path.partition("?")[0], [(404, {}, b"{}")])
        status, headers, body = left.pop(0) if len(left) > 1 else left[0]
        handler.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(body))}).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        with suppress(ConnectionError):  # The client refuses the rest of a large answer.
            handler.wfile.write(body)

    with Receiver() as receiver:
        receiver.answer = respond

        def answer(path="/v1/posts", status=200, body=b"", then=(), **headers):
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
            answers[path] = [(status, headers, body), *then]
            return f"http://127.0.0.1:{receiver.port}"

        yield answer


WRONG = [{"slug": slug} for slug in ("../../etc/passwd", "a/b", ".git")] + [{"id": "../1"}, {"id": 1}]
WRONG += [{"created_at": None}, {"updated_at": "soon"}, {"content": "a" * 1_000_001}]


@cases("wrong", WRONG)
def test_a_hostile_service_writes_nothing(run, hostile, tmp_path, wrong):
    address = hostile("/v1/posts", body=[POST | wrong])
    hostile("/v1/posts/1", body=POST | wrong)
    status, lines = run("pull", tmp_path / "folder", to=address)
    assert (status, " sent an invalid post: " in lines[-1]) == (1, True)
    assert contents(tmp_path / "folder") == {}


def test_a_scheduled_post_without_a_date_is_compared(run, hostile, folder):
    address = hostile(body=[POST | {"status": "scheduled"}])
    hostile("/v1/posts/1", body=POST | {"status": "scheduled"})
    assert run("status", folder(a="# A\n"), to=address)[1][0].startswith("conflict a.md")


MANY = b"[%s1]" % (b"{}," * 600_000)  # Parsed, a response of such values would take half a gigabyte.


@cases("body", [b"<html>", b"[" * 100_000, b"{}", b"[1]", b'[{"id": []}]', b" " * (33 * 2**20), MANY])
def test_anything_but_a_list_of_posts_is_refused(run, hostile, tmp_path, body):
    address = hostile(body=body)
    status, lines = run("pull", tmp_path / "folder", to=address)
    assert (status, lines[-1].startswith((address, "a response from"))) == (1, True)


def test_a_push_waits_at_the_limit_and_after_a_failure(run, hostile, folder):
    address = hostile(body=[])
    then = [(503, {"Retry-After": "0"}, b'{"message": "busy"}'), (201, {"ETag": '"1"'}, json.dumps(POST).encode())]
    hostile("/v1/posts/by-slug/a", 429, then=then, Retry_After="0")
    hostile("/v1/posts/by-slug/b", 201, POST | {"slug": "b"}, ETag='"1"')
    said = ["the rate limit is reached; trying again in 1 s", "busy; trying again in 2 s"]
    said += ["created a.md", "created b.md", counts(created=2)]
    assert run("push", folder(a="# A\n", b="# B\n"), to=address) == (0, said)


def test_a_missing_permission_is_reported_for_its_file_and_the_others_are_sent(run, hostile, folder):
    address = hostile(body=[])
    hostile("/v1/posts/by-slug/a", 403, {"message": "drafts only"})
    hostile("/v1/posts/by-slug/b", 201, POST | {"slug": "b"}, ETag='"1"')
    said = ["failed a.md: drafts only", "created b.md", counts(created=1, failed=1)]
    assert run("push", folder(a="# A\n", b="# B\n"), to=address) == (1, said)


@pytest.mark.slow
@pytest.mark.parametrize("is_trusted", [False, True])
def test_the_key_is_sent_only_to_a_service_whose_certificate_is_trusted(run, folder, tmp_path, monkeypatch, is_trusted):
    certificate = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate) if is_trusted else "")
    with Receiver(tls=context) as receiver:
        status, lines = run("push", folder(a="# A\n"), to=f"https://localhost:{receiver.port}")
    assert (status, "is not the URL" in lines[-1], "certificate" in lines[-1]) == (1, is_trusted, not is_trusted)
    assert len(receiver.messages) == is_trusted


def test_an_unencrypted_address_causes_a_warning_and_redirects_are_not_followed(run, hostile, folder):
    lines = run("push", folder(a="# A\n"), to="http://blog.invalid")[1]
    assert lines[0] == "http://blog.invalid is not encrypted: others on the network can read the key"
    assert lines[1].startswith("http://blog.invalid is not responding: ")
    address = hostile("/v1/posts", 301, Location="http://127.0.0.1:1/")
    said = f"{address} redirects to http://127.0.0.1:1/: use that URL"
    assert run("push", folder(a="# A\n"), to=address) == (1, [said])


def test_an_image_with_the_wrong_content_is_not_written(run, hostile, tmp_path):
    image = f"/images/{'0' * 32}.png"
    address = hostile("/v1/posts", body=[POST])
    hostile("/v1/posts/1", body=POST | {"content": f"![x]({address}{image})"})
    hostile(image, body=png())
    status, lines = run("pull", tmp_path / "folder", "--images", to=address)
    assert (status, lines[0]) == (1, f"failed a.md: the image {'0' * 32}.png is damaged")
    assert contents(tmp_path / "folder") == {}
