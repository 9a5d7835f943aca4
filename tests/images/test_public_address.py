"""Images at their public URLs, which anybody may see."""

from tests.cases import cases
from tests.conftest import message
from tests.images.conftest import send, upload
from tests.images.pictures import jpeg, large


def test_anybody_may_see_an_image(client, stranger, image):
    path = f"/images/{image['id']}.jpg"
    answer = stranger.get(path)
    assert answer.status_code == 200
    headers = {name: value for name, value in answer.headers if not name.startswith("X-RateLimit")}
    assert headers == {
        "Content-Type": "image/jpeg",
        "Content-Length": str(image["bytes"]),
        "ETag": f'"{image["id"]}"',
        "Content-Disposition": 'inline; filename="loaf.jpg"',
        "Accept-Ranges": "bytes",
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "Access-Control-Allow-Origin": "*",
        "Cache-Control": "public, max-age=31536000, immutable",
    }
    head = stranger.head(path)
    assert (head.data, head.headers["Content-Length"]) == (b"", str(image["bytes"]))
    ranged = stranger.head(path, headers={"Range": "bytes=0-1"})
    assert (ranged.status_code, ranged.headers["Content-Length"]) == (200, str(image["bytes"]))
    cached = stranger.get(path, headers={"If-None-Match": headers["ETag"]})
    assert (cached.status_code, cached.data, cached.headers["ETag"]) == (304, b"", headers["ETag"])
    assert client.get(path).data == answer.data


@cases("path", ["{}.png", "{}.jpeg", "{}", "{}.JPG", "0" * 32 + ".jpg", "A.jpg", "../v1/posts"])
def test_any_other_address_is_404(stranger, image, path):
    assert stranger.get(f"/images/{path.format(image['id'])}").status_code == 404


def test_a_non_ascii_name_is_encoded(client, stranger):
    image = upload(client, jpeg(), "Käse.jpg").json
    answer = stranger.get(f"/images/{image['id']}.jpg")
    assert answer.headers["Content-Disposition"] == "inline; filename*=UTF-8''K%C3%A4se.jpg"


@cases(
    ("header", "start", "end"),
    ("0-0", 0, 1),
    ("262143-262144", 262143, 262145),
    ("-7", -7, None),
    ("1000000-", 1_000_000, None),
    ("5-99999999", 5, None),
    ("-99999999", 0, None),
)
def test_one_range_is_answered(client, stranger, header, start, end):
    image = send(client, large()).json
    path = f"/images/{image['id']}.png"
    whole = stranger.get(path).data
    answer = stranger.get(path, headers={"Range": f"bytes={header}"})
    part = whole[start:end]
    first = start % len(whole)
    assert (answer.status_code, answer.data == part) == (206, True)
    assert answer.headers["Content-Range"] == f"bytes {first}-{first + len(part) - 1}/{len(whole)}"
    assert answer.headers["Content-Length"] == str(len(part))


def test_other_ranges_are_ignored_and_one_beyond_the_end_is_416(stranger, image):
    path, tag = f"/images/{image['id']}.jpg", f'"{image["id"]}"'
    others = [{"Range": each} for each in ("bytes=0-1,3-4", "lines=0-1", "bytes=5-1", "bytes", "bytes=a-b")]
    changed = ('"other"', f"W/{tag}", "Fri, 20 Nov 2026 12:00:00 GMT")
    for headers in (*others, *({"Range": "bytes=0-1", "If-Range": each} for each in changed)):
        answer = stranger.get(path, headers=headers)
        assert (answer.status_code, len(answer.data)) == (200, image["bytes"]), headers
    assert stranger.get(path, headers={"Range": "bytes=0-1", "If-Range": tag}).status_code == 206
    answer = stranger.get(path, headers={"Range": "bytes=9999999-"})
    assert message(answer, 416) == f"Range: the image has {image['bytes']:,} bytes"
    assert answer.headers["Content-Range"] == f"bytes */{image['bytes']}"
