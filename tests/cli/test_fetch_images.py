"""`blogapi import --fetch-images`: which images from other hosts are stored, and what a hostile host can do."""

import time

import pytest

from blogapi.wings.images import storage as images
from blogapi.wings.transfer import fetch
from tests.cli.conftest import LOAF, RYE, address, stored
from tests.images.pictures import webp
from tests.receiver import Receiver
from tests.service import free_port


class OldHost(Receiver):
    """The old host, which responds to each path with an image, a status or a redirect, or calls a function."""

    def __init__(self):
        super().__init__()
        self.server.handle_error = lambda *_: None  # for connections that the import closes
        self.url = f"http://127.0.0.1:{self.port}"
        self.paths = {}

    def answer(self, handler):
        found = self.paths.get(handler.path, 404)
        if callable(found):
            found(handler)
            return
        status = {int: found, str: 302}.get(type(found), 200)
        handler.send_response_only(status)
        if status == 302:
            handler.send_header("Location", found)
        content = found if status == 200 else b""
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    @property
    def asked(self):
        return [message.path for message in self.messages]


@pytest.fixture
def host():
    with OldHost() as host:
        yield host


@pytest.fixture
def private(monkeypatch):
    monkeypatch.setenv("BLOGAPI_WEBHOOK_PRIVATE", "true")


@pytest.fixture
def post(folder, host):
    """Write a post; {} in it stands for the old host. Return its folder."""
    return lambda text, head="": folder(a=f"---\ntitle: A\n{head}\n---\n{text}".replace("{}", host.url))


def counts(output):
    return next(line for line in output if line.startswith("images: "))


def test_images_on_other_hosts_are_stored_once_and_a_second_import_changes_nothing(run, storage, post, host, private):
    host.paths |= {"/a.png": RYE, "/b.jpg?w=1": LOAF, "/same.png": RYE, "/old.png": "/a.png"}
    text = '![]({}/a.png#top) ![]({}/a.png) <img src="{}/b.jpg?w=1"> ![]({}/same.png) ![]({}/old.png) ![]({}/gone.png)'
    top = post(text, "image: {}/b.jpg?w=1\nparams: {share: {}/a.png, page: {}/}")
    status, output, error = run("import", top, "--fetch-images")
    assert (status, counts(output)) == (0, "images: new 2, already stored 2, missing 0, fetched 4, not fetched 1")
    assert error == [f"{host.url}/gone.png: its host returned 404"]
    assert "On other hosts: 1 image (127.0.0.1 1)." in output
    rye, loaf = address(RYE), address(LOAF)
    before = stored(storage)["a"]
    content = f'![]({rye}) ![]({rye}) <img src="{loaf}"> ![]({rye}) ![]({rye}) ![]({host.url}/gone.png)'
    assert before["content"] == content
    assert (before["cover_image"], before["params"]) == (loaf, {"share": rye, "page": f"{host.url}/"})
    assert sorted(image.name for image in images.every(storage)) == ["a.png", "b.jpg"]
    assert sorted(host.asked) == ["/a.png", "/a.png", "/b.jpg?w=1", "/gone.png", "/old.png", "/same.png"]
    host.messages.clear()
    status, output, _ = run("import", top, "--fetch-images")
    assert (status, counts(output)) == (0, "images: new 0, already stored 4, missing 0, fetched 0, not fetched 1")
    assert host.asked == ["/gone.png"]
    assert stored(storage)["a"] == before


def test_a_dry_run_says_how_many_it_would_fetch_and_asks_no_host(run, storage, post, host, private):
    top = post("![]({}/a.png) ![]({}/a.png) ![]({}/b.png)")
    status, output, error = run("import", top, "--fetch-images", "--dry-run")
    assert (status, error, host.asked) == (0, [], [])
    assert counts(output) == "images: new 0, already stored 0, missing 0, to fetch 2"
    assert "On other hosts: 3 images (127.0.0.1 3)." in output


def test_a_deleted_image_is_fetched_again(run, storage, post, host, private):
    host.paths["/a.png"] = RYE
    run("import", post("![]({}/a.png)"), "--fetch-images")
    run("import", post("No image"))
    storage.write(images.delete, next(images.every(storage)).id, "2100")
    run("import", post("![]({}/a.png)"), "--fetch-images")
    assert (host.asked, len([*images.every(storage)])) == (["/a.png", "/a.png"], 1)


def test_images_are_fetched_only_with_the_option_and_never_with_no_images(run, storage, post, host):
    status, output, _ = run("import", post("![]({}/a.png)"))
    assert (status, host.asked) == (0, [])
    assert "On other hosts: 1 image (127.0.0.1 1)." in output
    status, _, error = run("import", post(""), "--fetch-images", "--no-images")
    assert status == 2
    assert "--fetch-images cannot be combined with --no-images" in error[-1]


def test_private_addresses_are_never_asked_even_after_a_redirect(run, storage, post, host, monkeypatch):
    status, _, error = run("import", post("![]({}/a.png) ![](http://localhost:1/b.png)"), "--fetch-images")
    assert (status, host.asked) == (0, [])
    assert all("is a private or loopback address" in line for line in error)
    monkeypatch.setenv("BLOGAPI_WEBHOOK_PRIVATE", "true")
    host.paths["/a.png"] = "http://169.254.169.254/latest"
    _, _, error = run("import", post("![]({}/a.png)"), "--fetch-images")
    reason = "169.254.169.254 is a link-local, multicast or metadata address, which is never called"
    assert error == [f"{host.url}/a.png: {reason}"]


def cut_off(handler):
    """Announce an image, send half of it and close the connection."""
    handler.send_response_only(200)
    handler.send_header("Content-Length", str(len(RYE)))
    handler.end_headers()
    handler.wfile.write(RYE[: len(RYE) // 2])


def endless(handler):
    handler.send_response_only(200)
    handler.end_headers()
    while True:
        handler.wfile.write(bytes(2**20))


def test_an_image_that_cannot_be_fetched_keeps_its_address_and_is_reported(run, storage, post, host, private):
    host.paths |= {
        "/text.png": b"Not an image",
        "/svg.png": b"<svg>",
        "/loop.png": "/loop.png",
        "/file.png": "file:///etc/hostname",
        "/long.png": f"/{'a' * 3000}",
        "/500.png": 500,
        "/cut.png": cut_off,
        "/endless.png": endless,
    }
    text = "".join(f"![]({{}}{path})\n" for path in host.paths)
    top = post(text + f"![](http://127.0.0.1:{free_port()}/closed.png)")
    status, output, error = run("import", top, "--fetch-images")
    assert (status, counts(output)) == (0, "images: new 0, already stored 0, missing 0, fetched 0, not fetched 9")
    assert [line.replace(host.url, "").split(": ", 1)[1] for line in error] == [
        "must be a JPEG, PNG, GIF, WebP or AVIF image; this seems to be text",
        "must be a JPEG, PNG, GIF, WebP or AVIF image; an SVG can run scripts",
        "too many redirects",
        "redirected to a URL that is not http or https",
        "its host returned 500",
        "the connection was lost, or the response was not HTTP",
        "more than 20,971,520 bytes",
        "cannot connect: Connection refused",
    ]
    assert host.asked.count("/loop.png") == fetch.MAX_REDIRECTS + 1
    assert stored(storage)["a"]["content"] == (top / "a.md").read_text().partition("---\n")[2].partition("---\n")[2]


def test_a_host_that_does_not_answer_is_given_up_after_three_images(run, storage, post, host, private, monkeypatch):
    monkeypatch.setattr(fetch, "SECONDS", 1)

    def drip(handler):
        handler.send_response_only(200)
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b"\x89")
            time.sleep(0.05)

    host.paths |= {f"/{number}.png": drip for number in range(5)}
    begun = time.monotonic()
    _, _, error = run("import", post("".join(f"![]({{}}/{number}.png)\n" for number in range(5))), "--fetch-images")
    assert time.monotonic() - begun < 10
    assert host.asked == ["/0.png", "/1.png", "/2.png"]
    reason = "no response within 1 s"
    assert [line.split(": ", 1)[1] for line in error] == [reason, f"its host failed 3 times: {reason}"]


def test_a_host_that_redirects_to_one_that_does_not_answer_is_given_up_too(run, storage, post, host, private):
    host.paths |= {f"/{number}.png": f"http://127.0.0.1:{free_port()}/" for number in range(5)}
    error = run("import", post("".join(f"![]({{}}/{number}.png)" for number in range(5))), "--fetch-images")[2]
    assert error[-1].endswith(": its host failed 3 times: cannot connect: Connection refused")
    assert len(host.asked) == 3


def test_an_import_fetches_a_limited_number_of_images(run, storage, post, host, private, monkeypatch):
    monkeypatch.setattr(fetch, "MAX_FETCHES", 2)
    host.paths |= {"/a.png": RYE, "/b.png": LOAF, "/c.png": webp()}
    top = post("![]({}/a.png) ![]({}/b.png) ![]({}/c.png)")
    _, output, error = run("import", top, "--fetch-images")
    assert counts(output) == "images: new 2, already stored 0, missing 0, fetched 2, not fetched 1"
    assert error == [f"{host.url}/c.png: import again to fetch it: fetching stops after 2 images or an hour"]
    _, output, error = run("import", top, "--fetch-images")
    assert (counts(output), error) == ("images: new 1, already stored 2, missing 0, fetched 1, not fetched 0", [])


def test_fetched_images_count_towards_the_total_size(run, storage, post, host, private, monkeypatch):
    monkeypatch.setenv("BLOGAPI_IMAGES_MB", "1")
    host.paths |= {"/a.png": RYE + bytes(2**20), "/b.png": RYE}
    _, _, error = run("import", post("![]({}/a.png) ![]({}/b.png)"), "--fetch-images")
    assert error == [f"{host.url}/a.png: more than 1,048,576 bytes"]
    assert [image.name for image in images.every(storage)] == ["b.png"]
