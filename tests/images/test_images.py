"""Images over HTTP: uploads, lists and deletion."""

import hashlib
import io
from urllib.parse import quote

import pytest

from blogapi.storage.errors import Rejected
from blogapi.storage.models import DraftCopy
from blogapi.wings.images import storage as images
from blogapi.wings.images import uploads
from blogapi.wings.images.storage import ImagePart
from blogapi.wings.owner import copies
from tests.api.fixtures import NOW, with_key
from tests.cases import cases
from tests.conftest import message, without_id
from tests.images.conftest import send, upload
from tests.images.pictures import gif, jpeg, large, photograph, png, save, webp


def test_an_upload_creates_an_image_whose_id_is_a_hash_of_its_bytes(client):
    answer = upload(client, jpeg(orientation=6))
    image_id = answer.json["id"]
    kept = client.get(f"/images/{image_id}.jpg").data
    assert (answer.status_code, answer.headers["Location"]) == (201, f"/v1/images/{image_id}")
    assert answer.json == {
        "id": hashlib.sha256(kept).hexdigest()[:32],
        "url": f"http://127.0.0.1:8000/images/{image_id}.jpg",
        "name": "loaf.jpg",
        "type": "image/jpeg",
        "bytes": len(kept),
        "width": 43,
        "height": 61,
        "created_at": NOW,
    }
    assert client.get(f"/v1/images/{image_id}").json == answer.json
    assert client.get("/v1/images").json == [answer.json]


def test_uploading_the_same_image_again_returns_the_existing_one(client, clock, count):
    first = send(client, large())
    clock.now += 60
    for answer in (send(client, large(), query="?name=b.png"), send(client, large())):
        assert (answer.status_code, answer.json, "Location" in answer.headers) == (200, first.json, False)
    assert count(ImagePart) == -(-first.json["bytes"] // images.PART_BYTES)


@pytest.mark.parametrize(("picture", "extension"), [(jpeg, "jpg"), (png, "png"), (gif, "gif"), (webp, "webp")])
@pytest.mark.parametrize("content_type", ["image/jpeg", "image/x-anything", ""])
def test_the_type_of_an_image_is_detected_from_its_bytes(client, picture, extension, content_type):
    media_type = f"image/{picture.__name__}"
    answer = send(client, picture(), content_type)
    assert (answer.status_code, answer.json["type"]) == (201, media_type)
    assert answer.json["url"].endswith(f".{extension}")
    public = client.get(f"/images/{answer.json['id']}.{extension}")
    assert (public.content_type, len(public.data)) == (media_type, answer.json["bytes"])


@cases(
    ("name", "stored"),
    ("loaf.jpg", "loaf.jpg"),
    ("/home/ada/loaf.jpg", "loaf.jpg"),
    ("C:\\Pictures\\loaf.jpg", "loaf.jpg"),
    ("Käse & Brot.jpg", "Käse & Brot.jpg"),
    ("a\tb\n\u2028.jpg", "ab.jpg"),
    ("", "{id}.jpg"),
    ("/", "{id}.jpg"),
)
def test_a_name_loses_its_folder_and_control_characters_and_defaults_to_the_id(client, name, stored):
    image = send(client, jpeg(), query=f"?name={quote(name)}" if name else "").json
    assert image["name"] == stored.format(id=image["id"][:8])
    client.delete(f"/v1/images/{image['id']}")


def test_the_end_of_a_long_name_is_kept(client):
    assert upload(client, jpeg(), "x" * 300 + ".jpg").json["name"] == "x" * 251 + ".jpg"


# What is refused

IS_ONE_OF = "file: must be a JPEG, PNG, GIF, WebP or AVIF image"
IS_UNKNOWN = "unknown; the form must have one part, `file`"


@cases(
    ("content", "status", "expected"),
    *((content, 415, IS_ONE_OF) for content in (b"", b"\xff", b"GIF88a" + bytes(100))),
    *((save(photograph(), kind), 415, IS_ONE_OF) for kind in ("BMP", "TIFF")),
    *((content, 415, f"{IS_ONE_OF}; this seems to be text") for content in (b"Hello", b"%PDF-1.7", b"PK\x03\x04")),
    (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 415, f"{IS_ONE_OF}; an SVG can run scripts"),
    (b"\0\0\0\x18ftypheic\0\0\0\0", 415, f"{IS_ONE_OF}; convert HEIC to JPEG first"),
    (jpeg()[:300], 400, "file: the file ends early"),
    (b"\0" * (20 * 1024**2 + 1), 413, "an image must have at most 20,971,520 bytes"),
)
@pytest.mark.in_process  # Another server may close the connection before the whole body has arrived.
def test_a_broken_or_other_file_is_refused_and_nothing_is_kept(client, count, content, status, expected):
    assert message(send(client, content), status) == expected
    assert (message(upload(client, content), status), count(ImagePart)) == (expected, 0)


@cases(
    ("body", "status", "expected"),
    ({"json": {}}, 415, "Content-Type: must be multipart/form-data with a part `file`, or an image/* type"),
    ({"data": {}}, 400, "file: missing; the form must have a part with this name"),
    ({"data": {"image": [b"a"]}}, 400, f"image: {IS_UNKNOWN}: curl -F file=@loaf.jpg"),
    ({"data": {"alt": "A loaf", "file": [b"a"]}}, 400, f"alt: {IS_UNKNOWN}"),
    ({"data": {"x" * 70: "b"}}, 400, f"{'x' * 60}: unknown"),
    ({"data": b"a", "content_type": f"{uploads.FORM}; boundary=b"}, 400, "body: must be a complete"),
    ({"data": b"a", "content_type": uploads.FORM}, 400, "body: must be a complete multipart/form-data body"),
    ({"data": {"file": [b"a", b"b"]}}, 400, "file: must be given once"),
)
def test_a_body_of_another_type_is_refused(client, body, status, expected):
    if isinstance(data := body.get("data"), dict):
        lists = {name: contents for name, contents in data.items() if isinstance(contents, list)}
        files = {name: [(io.BytesIO(content), "a") for content in contents] for name, contents in lists.items()}
        body = {"content_type": uploads.FORM, "data": data | files}
    assert message(client.post("/v1/images", **body), status).startswith(expected)


@pytest.mark.parametrize(
    ("images_mb", "said"),
    [
        (5, "images must not exceed 5 MiB in total (BLOGAPI_IMAGES_MB)"),
        (0, "uploads are turned off: BLOGAPI_IMAGES_MB is 0"),
    ],
)
def test_the_total_size_of_images_is_limited(own_app, images_mb, said):
    client = with_key(own_app(images_mb=images_mb))
    assert message(send(client, large()), 413) == message(upload(client, large()), 413) == said


@pytest.mark.in_process
def test_the_total_size_is_limited_for_concurrent_uploads_too(own_app, count, monkeypatch):
    app = own_app(images_mb=6)
    client, database = with_key(app), app.extensions["blogapi"].database
    first, others = save(photograph().resize((1600, 1200)).rotate(180), "PNG", compress_level=0), []

    def write(*arguments):
        if not others:  # before the first part is stored
            others.append(None)
            others[0] = send(client, first).status_code
        return type(database).write(database, *arguments)

    monkeypatch.setattr(database, "write", write)
    assert message(send(client, large()), 413) == "images must not exceed 6 MiB in total (BLOGAPI_IMAGES_MB)"
    assert (others, count(ImagePart)) == ([201], 22)


# The list


def test_the_list_has_pages_newest_first_even_while_images_are_deleted(client, clock):
    ids = []
    for content in (jpeg(), png(), gif(), webp()):
        ids.append(upload(client, content).json["id"])
        clock.now += 60
    first = client.get("/v1/images?limit=2")
    assert [image["id"] for image in first.json] == ids[:1:-1]
    assert client.get("/v1/images?limit=2", headers={"If-None-Match": first.headers["ETag"]}).status_code == 304
    client.delete(f"/v1/images/{ids[2]}")
    link = first.headers["Link"].partition(">")[0][1:]
    assert [image["id"] for image in client.get(link).json] == ids[1::-1]
    assert [image["id"] for image in client.get(f"/v1/images?before={ids[1]}").json] == ids[:1]
    wrong = "before: must be the id of an image, or the value from Link"
    for before in ("1", f"yesterday_{ids[1]}"):
        assert message(client.get(f"/v1/images?before={before}")) == wrong
    assert message(client.get(f"/v1/images?before={ids[2]}"), 404) == "no such image"


# Deletion


def test_an_image_is_found_by_the_last_address_that_it_was_fetched_from_until_it_is_deleted(client, database, image):
    for image_id in ("0" * 32, image["id"]):
        database.write(images.remember_fetched, "https://old.example/a.png", image_id)
    assert images.find_fetched(database, "https://old.example/a.png").id == image["id"]
    assert images.find_fetched(database, "https://old.example/b.png") is None
    client.delete(f"/v1/images/{image['id']}")
    assert images.find_fetched(database, "https://old.example/a.png") is None


def test_an_image_in_use_is_not_deleted_even_if_a_post_began_to_use_it_meanwhile(client, database, post, image):
    path, url, since = f"/v1/images/{image['id']}", image["url"], database.now
    post(title="A", content=f"![loaf]({url})")
    with pytest.raises(Rejected, match=r"still used in post 1 \(a\)"):
        database.write(images.delete, image["id"], since)
    post(title="B", cover_image=url)
    post(title="C", excerpt=url)
    post(title="D", params={"photo": [url]})
    assert message(client.delete(path)) == "image: still used in post 1 (a), post 2 (b), post 3 (c)"
    for post_id in (2, 3):
        client.delete(f"/v1/posts/{post_id}?permanent=true")
    client.patch("/v1/posts/1", json={"content": "None."})
    client.delete("/v1/posts/4")
    assert message(client.delete(path)) == "image: still used in revision 1 of post 1, post 4 in the trash"
    with pytest.raises(Rejected, match="still used in post 4 in the trash"):
        database.write(images.delete, image["id"], since)
    client.delete("/v1/trash/4")
    client.delete("/v1/posts/1?permanent=true")
    assert client.delete(path).status_code == 204


def test_an_image_that_only_a_proposal_or_unsaved_text_shows_is_not_deleted(client, database, post, image):
    post()
    since, path, text = database.now, f"/v1/images/{image['id']}", f"![]({image['url']})"
    assert client.post("/v1/posts/1/proposals", json={"content": text}).status_code == 201
    assert message(client.delete(path)) == "image: still used in a proposal for post 1"
    with pytest.raises(Rejected, match="still used in a proposal for post 1"):
        database.write(images.delete, image["id"], since)
    assert images.used_ids(database) == {image["id"]}
    copy = copies.Copy("copy-of-a-form", 1, "a-new-post")
    database.write(copies.put, copies.Sent(copy, {"content": text}))
    client.delete("/v1/posts/1?permanent=true")
    assert message(client.delete(path)) == "image: still used in unsaved text for a new post"
    database.write(lambda tx: tx.execute(DraftCopy.delete()))
    assert client.delete(path).status_code == 204


def test_a_deleted_image_is_gone_with_its_bytes_and_can_be_uploaded_again(client, stranger, count):
    image = send(client, large()).json
    tag = client.get(f"/v1/images/{image['id']}").headers["ETag"]
    stale = client.delete(f"/v1/images/{image['id']}", headers={"If-Match": '"x"'})
    assert message(stale, 412) == "If-Match: the image has changed since; get it again"
    assert client.delete(f"/v1/images/{image['id']}", headers={"If-Match": tag}).status_code == 204
    assert count(ImagePart) == 0
    for path in (f"/v1/images/{image['id']}", f"/images/{image['id']}.png"):
        assert client.get(path).status_code == 404
    assert client.delete(f"/v1/images/{image['id']}").status_code == 404
    assert send(client, large()).status_code == 201


def test_parts_of_unfinished_uploads_are_deleted_after_a_day(client, database, clock, count, background):
    image = send(client, large()).json
    lost = f"{database.now}_lost"
    for number in range(40):
        database.write(images.add_part, lost, number, b"x")
    kept = count(ImagePart) - 40
    background.prune()
    assert count(ImagePart) == kept + 40
    clock.now += 24 * 3600 + 1
    background.prune()
    assert count(ImagePart) == kept
    assert len(client.get(f"/images/{image['id']}.png").data) == image["bytes"]


@pytest.mark.sqlite
def test_others_are_served_while_an_image_is_read(client, meanwhile):
    assert (upload(client, jpeg()).status_code, meanwhile) == (201, [200])


def test_too_many_concurrent_uploads_are_503(client):
    place = uploads.slot
    with place("other"), place("other"), place("another"), place("one more"):
        answer = upload(client, jpeg())
        assert without_id(message(answer, 503)) == "too many uploads at once; try again"
        assert answer.headers["Retry-After"] == "1"
    assert upload(client, jpeg()).status_code == 201
    assert not uploads.uploads_of_clients


def test_the_parts_of_an_image_stay_even_if_its_commit_seemed_to_fail(client, stranger, database):
    image = send(client, large()).json
    (upload,) = database.row(images.Image.select(images.Image.upload))
    images.delete_upload(database, database.write, upload)
    assert len(stranger.get(f"/images/{image['id']}.png").data) == image["bytes"]
