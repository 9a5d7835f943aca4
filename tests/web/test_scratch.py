import pytest

from tests.owner.conftest import owner  # noqa
from tests.owner.test_tags import press, tagged, tags  # noqa
from tests.web.test_images import LARGE, send
from tests.web.test_micropub import URL, bad, change, post, query  # noqa


@pytest.mark.parametrize("deleted", [{"category": "ab"}, {"category": 5}, [["category"]], [5], {"name": {}}, "x", 5])
def test_refused(client, post, deleted):
    before = post()
    message = bad(change(client, delete=deleted))
    print(message)
    assert post() == before


def test_source(client, post):
    assert bad(query(client, q="source", after="x")).startswith("after: ")


def test_range(client, stranger):
    image = send(client, LARGE).json
    path = f"/images/{image['id']}.png"
    whole = stranger.get(path).data
    answer = stranger.get(path, headers={"Range": "bytes=-99999999"})
    assert (answer.status_code, answer.data == whole) == (206, True)
    assert answer.headers["Content-Range"] == f"bytes 0-{len(whole) - 1}/{len(whole)}"


def test_last_tag(client):
    name = "\U0010ffff" * 64
    client.post("/v1/posts", json={"title": "a", "content": "b", "tags": [name, "a", "\U0010ffffz"]})
    assert len(client.get("/v1/tags").json) == 3


@pytest.mark.usefixtures("tagged_")
def test_undo(owner, client):
    first = press(owner, "a", "Rename", name="x")
    press(owner, "b", "Rename", name="y")
    assert "1 post is" in first.press("Undo").said[0]
    assert tags(client) == {"a": 1, "y": 1, "travel": 2}


@pytest.fixture
def tagged_(client):
    for t, g in (("One", ["Travel", "a"]), ("Two", ["travel", "b"])):
        client.post("/v1/posts", json={"title": t, "content": "x", "tags": g})


@pytest.mark.usefixtures("tagged_")
def test_undo_same_post(owner, client):
    first = press(owner, "a", "Rename", name="x")
    second = press(owner, "travel", "Rename", name="trips")
    assert "0 posts are" in first.press("Undo").said[0]
    assert tags(client) == {"b": 1, "trips": 2, "x": 1}
    assert "2 posts are" in second.press("Undo").said[0]
    assert tags(client) == {"b": 1, "travel": 2, "x": 1}
