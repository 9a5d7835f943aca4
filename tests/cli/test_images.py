"""`blogapi images`, even after the service's URL has changed, and images in backups and copies."""

from datetime import timedelta

import pytest

from blogapi import documents
from blogapi.clock import earlier
from blogapi.paging import ListQuery
from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.storage.models import Author
from blogapi.wings.history import revisions
from blogapi.wings.images import storage as images
from blogapi.wings.images.storage import StoredImage
from tests.databases import opened

CONTENT = b"a" * images.PART_BYTES + b"b"


@pytest.fixture
def add(storage):
    """Write an image that was uploaded some days ago."""

    def add(number, days=2):
        upload, name = f"{storage.now}_{number}", f"{number}\u202e.jpg"
        image = StoredImage(f"{number:032x}", upload, name, "image/jpeg", len(CONTENT), 1, 1, "")
        for part in range(2):
            begin = part * images.PART_BYTES
            storage.write(images.add_part, upload, part, CONTENT[begin : begin + images.PART_BYTES])
        storage.write(images.add, image)
        created_at = earlier(storage.now, timedelta(days=days))
        made_older = images.Image.update(created_at=created_at).where(images.Image.id == image.id)
        storage.write(lambda tx: tx.execute(made_older))
        return f"{image.id}     262,145  {created_at}  {number}\ufffd.jpg"  # would reverse the text

    return add


def test_images_are_listed_newest_first_and_unused_ones_are_deleted_after_a_day(run, storage, add):
    used, unused, new = add(1, days=3), add(2), add(3, days=0)
    fields = {"title": "A", "content": f"![](/images/{1:032x}.jpg)", "tags": [], "status": "draft"}
    storage.write(posts.add, fields, Author(""))
    assert run("images") == (0, [new, unused, used], [])
    assert run("images", "--unused") == (0, [unused], [])
    assert run("images", "--unused", "--delete") == (0, [unused], [])
    assert (run("images"), images.total_bytes(storage)) == ((0, [new, used], []), 2 * len(CONTENT))


def test_with_a_damaged_post_no_image_counts_as_unused(run, storage, add, damage):
    image = add(1)
    storage.write(posts.add, {"title": "A", "content": "B", "tags": [], "status": "draft"}, Author(""))
    damage("post", "document", None)
    assert run("images", "--unused", "--delete") == (1, [], ["a post is damaged"])
    assert run("images") == (0, [image], [])


def test_a_backup_and_a_copy_contain_images(run, add, tmp_path):
    add(1)
    for command in ("backup", "copy"):
        path = tmp_path / f"{command}.db"
        assert run(command, path)[0] == 0
        with opened(path, create=False) as database:
            image = images.get(database, f"{1:032x}")
            assert b"".join(images.read(database, image, 0, image.bytes)) == CONTENT


# The address of the service has changed

IMAGE = f"/images/{1:032x}.jpg"
OLD, NEW = "http://127.0.0.1:8000", "https://blog.example.org"


@pytest.fixture
def add_post(storage, monkeypatch):
    """Create a post with some fields; return its id."""
    monkeypatch.setenv("BLOGAPI_URL", NEW)

    def add_post(**fields):
        new = {"title": "A", "content": "B", "tags": [], "status": "published"} | fields
        return storage.write(posts.add, new, Author("first")).id

    return add_post


def contents(storage):
    return [documents.load(document)["content"] for document in lists.page(storage, ListQuery(99)).items]


def test_image_addresses_change_in_every_field_and_others_do_not(add_post, run, storage):
    others = f"{OLD}/v1/posts {OLD}/images/loaf.jpg https://example.org{IMAGE}"
    add_post(content="nothing")
    old, new = OLD + IMAGE, NEW + IMAGE
    number = add_post(content=f"![]({old}) {others}", excerpt=old, cover_image=old, params={"a": [old, 1]})
    status, output, _ = run("images", "--rebase", f"{OLD}/")
    assert (status, output) == (0, ["a-2: changed", "changed 1, left alone 0"])
    post = documents.load(posts.get(storage, number))
    assert (post["content"], post["excerpt"]) == (f"![]({new}) {others}", new)
    assert (post["cover_image"], post["params"]) == (new, {"a": [new, 1]})
    assert revisions.page(storage, number, 9).items[0].author == "rebase"
    assert run("images", "--rebase", OLD)[1] == ["changed 0, left alone 0"]


def test_an_unchanged_post_is_not_reported_as_changed(add_post, run):
    add_post(title=f"{OLD}{IMAGE}", content=f"![]({NEW}{IMAGE})")
    for former in (OLD, NEW):
        assert run("images", "--rebase", former) == (0, ["changed 0, left alone 0"], [])


def test_without_a_public_address_they_point_to_the_server(add_post, run, storage, monkeypatch):
    add_post(content=f"![]({NEW}{IMAGE})")
    monkeypatch.delenv("BLOGAPI_URL")
    assert run("images", "--rebase", NEW)[1] == ["a: changed", "changed 1, left alone 0"]
    assert contents(storage) == [f"![]({OLD}{IMAGE})"]


def test_one_undo_reverts_it(add_post, run, storage):
    for _ in range(3):
        add_post(content=f"![]({OLD}{IMAGE})")
    before = contents(storage)
    _, _, error = run("images", "--rebase", OLD)
    command = error[0].removeprefix("To revert this: blogapi ").split()
    assert contents(storage) != before
    assert run(*command)[0] == 0
    assert contents(storage) == before


def test_a_post_that_would_become_too_long_is_left_alone_and_reported(add_post, run, storage):
    add_post(cover_image=f"{OLD}{IMAGE}?{'x' * (2048 - len(OLD + IMAGE) - 1)}")
    status, output, _ = run("images", "--rebase", OLD)
    assert (status, output[1]) == (1, "changed 0, left alone 1")
    assert output[0].startswith("a: left alone: cover_image: must have")
