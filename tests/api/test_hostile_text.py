"""Whatever text a client sends, the service responds in bounded time, because it checks lengths before characters."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blogapi.markdown.front_matter import MarkdownError
from blogapi.markdown.html import markdown_of
from blogapi.posts.slugs import slug_of
from tests.owner.pages import enter, send, view
from tests.timing import is_linear, time_limit

pytestmark = [pytest.mark.in_process, pytest.mark.slow]

MARKS = "\u0301\u0316"  # two combining classes, which normalization sorts
UNITS = [MARKS, "\u0345", "[", "![", "`", "漢", "\ufb01", "\ufdfa", "\0", "%", "%CC%81", "> ", "<b>", "<li>a", "a" * 99]
UNITS += ["- [ ] a\n", "|a|\n|-|\n", "*a_", " ", "\n", '"', "\\", "://", "🧑‍🍳"]
POST = {"title": "A", "content": "B"}
QUERIES = ("q", "tag", "before", "fields", "limit", "published_after")
MICROPUB = ("name", "summary", "featured", "mp-slug", "published", "category", "photo", "in-reply-to", "unknown")


def new(name):
    """A post with this text in a field."""
    return lambda client, text: client.post("/v1/posts", data=json.dumps(POST | {name: text}), content_type=JSON)


def query(path):
    return lambda client, text: client.get(path + quote(text))


def header(name):
    return lambda client, text: client.post("/v1/posts", json=POST, headers={name: quote(text, safe=' ",;=*[`')})


def micropub(properties, **message):
    """A message in which TEXT is replaced by this text."""
    message = json.dumps({"type": ["h-entry"], "properties": properties} | message)
    return lambda client, text: client.post(
        "/micropub", data=message.replace('"TEXT"', json.dumps(text)), content_type=JSON
    )


def update(**parts):
    return micropub({}, action="update", url="http://127.0.0.1:8000/v1/posts/1", **parts)


def markdown(front_matter):
    def put(client, text):
        data = f"---\n{front_matter % json.dumps(text[:60_000])}\n---\n\nB"
        return client.put("/v1/posts/by-slug/file", data=data, content_type="text/markdown")

    return put


JSON = "application/json"
LINE, BODY = 4_000, 300_000  # characters that a server accepts in a line, and in a body
PLACES = {
    **{name: (new(name), BODY) for name in ("title", "content", "excerpt", "slug", "cover_image", "published_at")},
    "tags": (lambda client, text: client.post("/v1/posts", json=POST | {"tags": [text] * 3}), BODY),
    "params": (lambda client, text: client.post("/v1/posts", json=POST | {"params": {text: [text]}}), BODY),
    **{name: (query(f"/v1/posts?{name}="), LINE) for name in QUERIES},
    "a path of a tag": (query("/v1/tags/"), LINE),
    "a path of a slug": (query("/v1/posts/by-slug/"), LINE),
    "filter": (query("/micropub?q=category&filter="), LINE),
    "url": (query("/micropub?q=source&url="), LINE),
    "the name of an image": (
        lambda client, text: client.post(f"/v1/images?name={quote(text)}", data=b"GIF89a", content_type="image/gif"),
        LINE,
    ),
    **{name: (header(name), 2_000) for name in ("Idempotency-Key", "If-Match", "Accept", "Content-Type")},
    **{f"micropub {name}": (micropub({"content": ["A"], name: ["TEXT"]}), BODY) for name in MICROPUB},
    "micropub content": (micropub({"content": ["TEXT"]}), BODY),
    "micropub html": (micropub({"content": [{"html": "TEXT"}]}), 100_000),
    "micropub element": (micropub({"content": [{"html": "<p>TEXT"}]}), BODY),
    "micropub alt": (micropub({"photo": [{"value": "https://a.example/b", "alt": "TEXT"}]}), BODY),
    "micropub replaces": (update(replace={"content": [{"html": "TEXT"}]}), 100_000),
    "micropub adds": (update(add={"category": ["TEXT"], "photo": ["TEXT"]}), BODY),
    "micropub deletes": (update(delete={"category": ["TEXT", "TEXT"]}), BODY),
    "a title in YAML": (markdown("title: %s"), BODY),
    "a tag in YAML": (markdown("title: A\ntags: [%s]"), BODY),
    "a name in YAML": (markdown("title: A\nparams: {%s: 1}"), BODY),
}
HOSTILE = st.lists(st.sampled_from(UNITS), min_size=1, max_size=3).map("".join)
MANY = settings(max_examples=max(12, min(settings.default.max_examples // 2, 200)))


def repeated(unit, size):
    return (unit * (size // len(unit) + 1))[:size]


@pytest.mark.parametrize("place", PLACES)
def test_no_text_takes_a_second(client, place):
    send_text, bound = PLACES[place]
    client.post("/v1/posts", json=POST)

    @MANY
    @given(HOSTILE, st.sampled_from([4_000, bound]))
    def check(unit, size):
        text = repeated(unit, min(size, bound))
        with time_limit(1):
            answer = send_text(client, text)
        assert answer.status_code < 500

    check()


@pytest.mark.sqlite
@pytest.mark.parametrize("use", [slug_of, markdown_of])
@MANY
@given(unit=HOSTILE)
def test_no_text_in_an_import_takes_quadratic_time(use, unit):
    def run(size):
        try:
            use(repeated(unit, size))
        except MarkdownError:
            return

    assert is_linear(run, 30_000, slack=0.1)


@pytest.mark.sqlite
def test_no_text_takes_long_in_a_preview(app):
    owner = enter(app)
    token = view(owner, "/settings/posts/new").soup.find(attrs={"name": "preview_token"})["value"]

    @settings(MANY, max_examples=MANY.max_examples // 2)
    @given(HOSTILE)
    def check(unit):
        fields = {"title": "A", "preview_token": token, "content": repeated(unit.replace("\0", "0"), 100_000)}
        with time_limit(6):
            answer = send(owner, "/settings/preview", fields)
        assert answer.status_code == 200

    check()
