"""blogapi images --rebase: the address of the service has changed."""

import pytest

from blogapi import documents
from blogapi.paging import ListQuery
from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.storage.models import Author
from blogapi.wings.history import revisions

IMAGE = f"/images/{1:032x}.jpg"
OLD, NEW = "http://127.0.0.1:8000", "https://blog.example.org"


@pytest.fixture
def add(storage, monkeypatch):
    """Create a post with some fields; return its id."""
    monkeypatch.setenv("BLOGAPI_URL", NEW)

    def add(**fields):
        new = {"title": "A", "content": "B", "tags": [], "status": "published"} | fields
        return storage.write(posts.add, new, Author("first")).id

    return add


def contents(storage):
    return [documents.load(document)["content"] for document in lists.page(storage, ListQuery(99)).items]


def test_image_addresses_change_in_every_field_and_others_do_not(add, run, storage):
    others = f"{OLD}/v1/posts {OLD}/images/loaf.jpg https://example.org{IMAGE}"
    add(content="nothing")
    number = add(
        content=f"![]({OLD}{IMAGE}) {others}",
        excerpt=f"{OLD}{IMAGE}",
        cover_image=f"{OLD}{IMAGE}",
        params={"a": [f"{OLD}{IMAGE}", 1]},
    )
    status, output, _ = run("images", "--rebase", f"{OLD}/")
    assert (status, output) == (0, ["a-2: changed", "changed 1, left 0"])
    post = documents.load(posts.find(storage, number))
    assert (post["content"], post["excerpt"]) == (f"![]({NEW}{IMAGE}) {others}", f"{NEW}{IMAGE}")
    assert (post["cover_image"], post["params"]) == (f"{NEW}{IMAGE}", {"a": [f"{NEW}{IMAGE}", 1]})
    assert revisions.page(storage, number, 9).items[0].author == "rebase"
    assert run("images", "--rebase", OLD)[1] == ["changed 0, left 0"]


def test_an_unchanged_post_is_not_reported_as_changed(add, run):
    add(title=f"{OLD}{IMAGE}", content=f"![]({NEW}{IMAGE})")
    for former in (OLD, NEW):
        assert run("images", "--rebase", former) == (0, ["changed 0, left 0"], [])


def test_without_a_public_address_they_point_to_the_server(add, run, storage, monkeypatch):
    add(content=f"![]({NEW}{IMAGE})")
    monkeypatch.delenv("BLOGAPI_URL")
    assert run("images", "--rebase", NEW)[1] == ["a: changed", "changed 1, left 0"]
    assert contents(storage) == [f"![]({OLD}{IMAGE})"]


def test_one_undo_reverts_it(add, run, storage):
    for _ in range(3):
        add(content=f"![]({OLD}{IMAGE})")
    before = contents(storage)
    _, _, error = run("images", "--rebase", OLD)
    command = error[0].removeprefix("To revert this: blogapi ").split()
    assert contents(storage) != before
    assert run(*command)[0] == 0
    assert contents(storage) == before


def test_a_post_that_would_become_too_long_is_left_alone_and_reported(add, run, storage):
    add(cover_image=f"{OLD}{IMAGE}?{'x' * (2048 - len(OLD + IMAGE) - 1)}")
    status, output, _ = run("images", "--rebase", OLD)
    assert (status, output[1]) == (1, "changed 0, left 1")
    assert output[0].startswith("a: left: cover_image: must have")
