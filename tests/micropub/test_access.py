"""Micropub: the media endpoint, keys, and limits on requests."""

import pytest

from blogapi.api.forms import READ_BYTES
from blogapi.config import zone_named
from blogapi.wings.images.storage import Image
from tests.api.fixtures import LATER, with_key
from tests.cases import cases
from tests.conftest import without_id
from tests.images.pictures import jpeg
from tests.micropub.conftest import MEDIA, PATH, URL, URLENCODED, bad, entry, error, form, query
from tests.service import add_key
from tests.timing import memory_limit, time_limit

# The media endpoint


def test_700_an_image_is_uploaded(client):
    answer = client.post(MEDIA, **form(file=("sunset.jpg", jpeg())))
    assert answer.status_code == 201
    assert client.get(answer.headers["Location"].removeprefix(URL)).mimetype == "image/jpeg"
    again = client.post(MEDIA, **form(other=("sunset.jpg", jpeg())))
    assert (again.status_code, again.headers["Location"]) == (201, answer.headers["Location"])


@pytest.mark.both_engines
def test_701_702_other_files_are_refused(client, count):
    assert error(client.post(MEDIA, **form(file=("a.jpg", b"x"))), 415, "invalid_request").startswith("file: must be")
    assert bad(client.post(MEDIA, **form(file="x"))).startswith("file: missing")
    assert error(client.post(MEDIA, json={}), 415, "invalid_request")
    assert count(Image) == 0


# Keys


@pytest.fixture
def new_key(database):
    return lambda scope="full": add_key(database, scope, scope)


def test_800_801_the_key_is_in_the_header_or_in_the_form_but_not_in_the_query(stranger, new_key, client):
    token = new_key()
    bearer = {"Authorization": f"Bearer {token}"}
    remaining = 1_000_000
    for options in (
        {"data": {"content": "A"}, "headers": bearer},
        {"data": {"content": "A", "access_token": token}},
        {"data": {"content": "A", "access_token": token}, "headers": bearer},
        {"data": f"content=A&access%5Ftoken=%{ord('b'):x}{token[1:]}", "content_type": URLENCODED},
        form(content="A", access_token=token),
        form(access_token=token, photo=("a.jpg", jpeg())),
    ):
        answer = stranger.post(PATH, **options)
        remaining -= 1
        assert (answer.status_code, answer.headers["X-RateLimit-Remaining"]) == (201, str(remaining))
    error(stranger.post(PATH, data={"content": "A", "access_token": token + "x" * 200}), 401, "unauthorized")
    error(stranger.get(PATH, query_string={"q": "config", "access_token": token}), 401, "unauthorized")
    both = {"data": {"content": "A", "access_token": new_key("read-only")}, "headers": bearer}
    assert bad(stranger.post(PATH, **both)) == "access_token: must be the key in Authorization, or be left out"


@cases(
    "options",
    [
        {"data": {"content": "A"}},
        {"data": {"content": "A", "access_token": "x"}},
        {"json": {"properties": {"content": ["A"]}, "access_token": "x"}},
        {"data": {"content": "A"}, "headers": {"Authorization": "Bearer x"}},
        form(content="A"),
        form(photo=("a.jpg", jpeg()), access_token="x"),
    ],
)
def test_802_without_a_key_nothing_is_done(stranger, client, options, count):
    answer = stranger.post(PATH, **options)
    error(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert (client.get("/v1/posts").json, count(Image)) == ([], 0)


def test_803_804_what_a_key_may_do_depends_on_its_scope(stranger, new_key, client, post):
    client.post("/v1/posts", json={"title": "Draft", "content": "A", "tags": ["secret"]})
    for scope, posts, tags in (("read-only", 2, ["a", "b", "secret"]), ("published-only", 1, ["a", "b"])):
        headers = {"Authorization": f"Bearer {new_key(scope)}"}
        answer = stranger.post(PATH, data={"content": "A"}, headers=headers)
        assert error(answer, 401, "insufficient_scope").startswith(f"this key is {scope}")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert error(stranger.post(MEDIA, **form(file=("a.jpg", jpeg())), headers=headers), 401, "insufficient_scope")
        assert len(stranger.get(f"{PATH}?q=source", headers=headers).json["items"]) == posts
        assert stranger.get(f"{PATH}?q=category", headers=headers).json == {"categories": tags}
        drafts = stranger.get(f"{PATH}?q=source&post-status=draft", headers=headers).json["items"]
        assert len(drafts) == (scope == "read-only")
        draft = stranger.get(f"{PATH}?q=source&url={URL}/v1/posts/2", headers=headers)
        assert draft.status_code == (200 if scope == "read-only" else 400)


def test_the_keys_limit_applies(own_app):
    client = with_key(own_app(rate_limit=2))
    assert [client.get(f"{PATH}?q=config").status_code for _ in range(2)] == [200, 200]
    answer = client.post(PATH, data={"content": "A"})
    error(answer, 429, "too_many_requests")
    assert "Retry-After" in answer.headers


@pytest.mark.parametrize("path", [PATH, MEDIA])
def test_other_methods_are_405(client, stranger, path):
    for method in ("PUT", "PATCH", "DELETE"):
        error(client.open(path, method=method), 405, "invalid_request")
        error(stranger.open(path, method=method), 401, "unauthorized")


def test_a_slash_at_the_end_makes_no_difference(client, stranger):
    assert client.get(f"{PATH}/?q=syndicate-to").json == {"syndicate-to": []}
    assert stranger.get(f"{PATH}/").mimetype == "text/html"
    assert client.post(f"{PATH}/", data={"content": "A"}).status_code == 201
    error(client.put(f"{PATH}/"), 405, "invalid_request")


def test_without_a_key_there_is_a_page_that_lets_programs_find_the_endpoint(stranger):
    answer = stranger.get(PATH)
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    assert answer.headers["Link"] == f'<{URL}/micropub>; rel="micropub"'
    assert f'<link rel="micropub" href="{URL}/micropub">' in answer.text
    assert stranger.head(PATH).headers["Link"] == answer.headers["Link"]


# Limits


@cases(
    ("options", "status"),
    ({"data": "content=" + "a" * 1_100_000, "content_type": URLENCODED}, 413),
    (form(content="a" * 1_100_000), 413),
    ({"data": "&".join("a=b" for _ in range(300)), "content_type": URLENCODED}, 400),
    (form(a=["b"] * 300), 400),
    ({"data": "x", "content_type": "multipart/form-data; boundary=b"}, 400),
    ({"data": "x", "content_type": "text/plain"}, 415),
)
@pytest.mark.in_process
def test_the_size_of_a_strangers_body_is_limited(stranger, options, status):
    assert error(stranger.post(PATH, **options), status, "invalid_request")


def test_a_long_post_can_be_sent_as_a_form_with_a_key(create):
    assert len(create(**form(content="ж" * 900_000))[0]["content"]) == 900_000
    assert len(create({"content": "ж" * 600_000})[0]["content"]) == 600_000


@cases(
    ("body", "content_type"),
    (b"content=caf\xe9", URLENCODED),
    (b"content=caf%E9", URLENCODED),
    tuple(form(content=[b"\xe9"]).values()),
)
def test_text_that_is_not_utf_8_is_refused(client, body, content_type):
    assert bad(client.post(PATH, data=body, content_type=content_type)) == "body: must be UTF-8"


@pytest.mark.sqlite
def test_a_form_takes_little_memory_while_it_is_read(client):
    body = b"content=" + b"%D0%B6" * 150_000
    with memory_limit(16 * len(body)):
        assert client.post(PATH, data=body, content_type=URLENCODED).status_code == 201


@cases("rest", range(-3, 7))
def test_a_form_is_read_wherever_it_is_split(create, rest):
    length = READ_BYTES + rest - len(form(content="")["data"])
    assert len(create(**form(content="a" * length))[0]["content"]) == length


@pytest.mark.parametrize("charset", ["iso-8859-1", "utf-16"])
def test_json_in_another_charset_is_415(client, count, charset):
    sent = {"data": '{"properties": {"content": ["A"]}}', "content_type": f"application/json; charset={charset}"}
    assert error(client.post(PATH, **sent), 415, "invalid_request").startswith("Content-Type: must be ")
    assert client.post(PATH, **sent | {"content_type": "application/json; charset=utf-8"}).status_code == 201


@cases("body", ["[", "[]", '{"type": 1}', '{"properties": []}', '{"a": 1, "a": 2}', "[" * 100_000])
def test_json_that_is_not_a_message_is_refused(client, body):
    assert bad(client.post(PATH, data=body, content_type="application/json"))


@cases("content", ["[" * 900_000, "***\n" * 200_000, "*" * 900_000, "![a](" * 180_000])
def test_the_title_of_hostile_content_is_found_quickly(create, content):
    with time_limit(2):
        create(json=entry(content=content + "x"))


# BLOGAPI_POST_URL


@pytest.mark.both_engines
def test_addresses_are_on_the_site_and_old_ones_lead_to_their_post(own_app):
    client = with_key(own_app(post_url="https://blog.example.org/posts/{slug}/"))
    answer = client.post(PATH, data={"name": "Hello", "content": "A"})
    old, new = "https://blog.example.org/posts/hello/", "https://blog.example.org/posts/bye/"
    assert (answer.headers["Location"], answer.json["url"]) == (old, old)
    for same in (old, f"{old}?x=y#z", old.rstrip("/"), "http://127.0.0.1:8000/v1/posts/1"):
        assert query(client, q="source", url=same).json["properties"]["url"] == [old]
    moved = client.post(PATH, json={"action": "update", "url": old, "replace": {"mp-slug": ["Bye"]}})
    assert (moved.status_code, moved.headers["Location"]) == (201, new)
    other = client.post(PATH, json=entry(name=["Hello"], content=["C"], **{"mp-slug": ["hello"]}))
    assert other.headers["Location"] == "https://blog.example.org/posts/hello-2/"
    assert client.post(PATH, json={"action": "update", "url": old, "replace": {"name": ["D"]}}).status_code == 204
    assert query(client, q="source", url=old).json["properties"].items() >= {"name": ["D"], "url": [new]}.items()
    assert client.post(PATH, data={"action": "delete", "url": old}).status_code == 204
    assert [post["slug"] for post in client.get("/v1/posts").json] == ["hello-2"]
    client.post("/v1/posts", json={"title": "Other", "content": "A", "slug": "bye"})
    restored = client.post(PATH, data={"action": "undelete", "url": new})
    assert (restored.status_code, restored.json["url"]) == (201, "https://blog.example.org/posts/bye-2/")


@pytest.mark.sqlite
@pytest.mark.parametrize(("path", "part"), [(MEDIA, "file"), (PATH, "photo")])
def test_a_file_that_does_not_fit_on_the_disk_is_503(own_app, small_disk, path, part):
    client = with_key(own_app(database=small_disk / "blog.db"))
    answer = client.post(path, **form(**{part: ("a.jpg", jpeg() + bytes(4_000_000))}))
    assert without_id(error(answer, 503, "temporarily_unavailable")) == "the disk is full; nothing was changed"
    assert answer.headers["Retry-After"] == "1"


def test_a_drafts_only_key_creates_drafts_and_changes_nothing_else(app, client, post):
    post()
    agent = with_key(app, "drafts-only")
    draft = agent.post(PATH, json=entry(name=["B"], content=["C"]))
    url = draft.headers["Location"]
    assert (draft.status_code, client.get("/v1/posts/2").json["status"]) == (201, "draft")
    assert agent.post(PATH, json={"action": "update", "url": url, "replace": {"name": ["D"]}}).status_code == 204
    assert agent.post(PATH, data={"action": "delete", "url": url}, content_type=URLENCODED).status_code == 204
    assert agent.post(PATH, data={"action": "undelete", "url": url}, content_type=URLENCODED).status_code == 204
    assert agent.post(MEDIA, **form(file=("a.jpg", jpeg()))).status_code == 201
    published = f"{URL}/v1/posts/1"
    for body in (
        entry(content=["C"]) | {"properties": {"content": ["C"], "post-status": ["published"]}},
        {"action": "update", "url": published, "replace": {"name": ["D"]}},
        {"action": "update", "url": url, "replace": {"post-status": ["published"]}},
        {"action": "delete", "url": published},
    ):
        why = error(agent.post(PATH, json=body), 401, "insufficient_scope")
        assert why.startswith("this key is drafts-only: it may read posts and their tags; ")
    assert client.get("/v1/posts/1").json["title"] == "A"
    assert client.get("/v1/posts/2").json["status"] == "draft"


def test_times_without_an_offset_are_in_the_zone_of_the_service(own_app):
    client = with_key(own_app(timezone=zone_named("Asia/Tokyo")))
    times = {
        "2020-01-02T08:00": "2020-01-01T23:00:00Z",
        "2020-01-02 08:00:00": "2020-01-01T23:00:00Z",
        "2020-01-02": "2020-01-01T15:00:00Z",
        "2020-01-02T08:00:00Z": "2020-01-02T08:00:00Z",
        "2020-01-02T08:00:00-05:00": "2020-01-02T13:00:00Z",
    }
    for number, (published, expected) in enumerate(times.items(), 1):
        client.post(PATH, json=entry(content=[f"B {number}"], published=[published]))
        assert client.get(f"/v1/posts/{number}").json["published_at"] == expected
    client.post(PATH, data={"h": "entry", "content": "B", "published": "2026-11-20T20:00"}, content_type=URLENCODED)
    assert client.get("/v1/posts/6").json["published_at"] == "2026-11-20T11:00:00Z"
    update = {"action": "update", "url": f"{URL}/v1/posts/6", "replace": {"published": ["2026-11-20T22:00"]}}
    assert client.post(PATH, json=update).status_code == 204
    assert client.get("/v1/posts/6").json.items() >= {"status": "scheduled", "published_at": LATER}.items()
    client.post(PATH, json=entry(content=["B"], published=[{"value": "2020-01-02"}]))
    assert client.get("/v1/posts/7").json["published_at"] == "2020-01-01T15:00:00Z"
    for nothing in ("", None, {"value": ""}):
        assert client.post(PATH, json=update | {"replace": {"published": [nothing]}}).status_code == 204
    for text in ("soon", "0001-01-01"):  # In UTC, the latter is in the year 0.
        wrong = bad(client.post(PATH, json=entry(content=["B"], published=[text])))
        assert wrong.startswith("published: must be a date")
    assert bad(client.post(PATH, json=entry(content=["B"], published=["a", "b"]))) == "published: must have one value"


def test_a_program_that_tries_xml_rpc_is_led_to_micropub(stranger):
    answer = stranger.post("/xmlrpc.php", data="<methodCall/>", content_type="text/xml")
    assert (answer.status_code, answer.json.keys(), answer.json["error"]) == (404, {"error", "message"}, 404)
    said = answer.json["message"]
    assert said.endswith("choose Micropub in the program, with the URL http://127.0.0.1:8000/micropub")
