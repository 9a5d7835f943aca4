"""GET /posts?q=…: which words find which posts, in which order."""

import pytest

from blogapi.clock import rfc3339
from blogapi.post import STATUSES
from blogapi.storage.search import sqlite
from tests.conftest import message
from tests.web.test_list import walk


@pytest.fixture
def found(client):
    """Search; return the ids of the posts that are found, as one word."""

    def found(q, **query):
        answer = client.get("/v1/posts", query_string={"q": q} | query)
        assert answer.status_code == 200, answer.text
        return "".join(post["id"] for post in answer.json)

    return found


MATCHES = [
    # q, and the posts that it finds; see `some`
    ("fog", "1"),
    ("FOG", "1"),
    ("fo", ""),
    ("lake fog", "1"),
    ("lake", "21"),
    ("strasse", "1"),
    ("STRAẞE", "1"),
    ("cafe", "2"),
    ("CAFÉ", "2"),
    ("naive", "2"),
    ("e\u0301clair", "2"),
    # the beginning of a word
    ("f*", "1"),
    ("fo*", "1"),
    ("fog*", "1"),
    ("stras* l*", "1"),
    ("la*", "21"),
    ("lak*", "21"),
    ("cons*", "2"),
    ("co*", "2"),
    ("zz*", ""),
    ("(stras*), l*.", "1"),
    ("＊lak＊", "21"),
    # sequences
    ('"fog over"', "1"),
    ('"over fog"', ""),
    ('"over the lake"', "1"),
    ('"see fog"', ""),  # title and content
    ('"constance winter"', ""),  # two tags
    ('"lake constance"', "2"),
    ('"excerpt lake"', ""),
    ('"fog over" "the lake"', "1"),
    ('lake"fog"', "1"),
    ('"FOG, over!"', "1"),
    # scripts without spaces
    ("東京", "3"),
    ("東", "3"),
    ("京都", ""),
    ("京東", ""),
    ("東京タワー", "3"),
    ("東京 ワー", "3"),
    ("東京tower", "3"),
    ("京tower", "3"),
    ("tower東", ""),
    ("東京to*", "3"),
    ("東*", "3"),
    ("ﾀﾜｰ", "3"),
    ("ไก", "3"),
    ("กไ", ""),
    ("ไก่", "3"),
    ("ไก้", ""),
    ("한국", "3"),
    ("국한", ""),
    # nothing else has a meaning
    ("fog OR cafe", ""),
    ("fog AND lake", ""),
    ("fog NOT cafe", ""),
    ("NOT fog", ""),
    ("NEAR(fog lake)", ""),
    ("words:fog", ""),
    ("words : fog", ""),
    ("{words} : fog", ""),
    ("fog-lake", "1"),
    ("^fog", "1"),
    ("fog + over", "1"),
    ("-fog", "1"),
    ("(fog", "1"),
    ("fog)", "1"),
    ("fog'", "1"),
    ("' OR 1=1 --fog", ""),
    ('"fog', "1"),
    ('fog"', "1"),
    ('"""fog', "1"),
    ('""fog""', "1"),
    ("fo* *", "1"),
    ("* fog *", "1"),
    ("f*g", ""),
    ("fo**", ""),
    ('"fo*"', ""),
    ('"fog over the la"*', ""),
    ("fo *", ""),
    ("draft", ""),
    ("published", ""),
    ("§fo", ""),
    ("¶lake", "21"),
    ("🍳 fog", "1"),
    ("fog\t\nlake", "1"),
    ("x" * 200, ""),
    ("a " * 100, "2"),
]


@pytest.fixture
def some(post):
    post(title="An der Straße am See", content="Fog over\nthe lake.", status="published", excerpt="Excerpt")
    post(title="Café", content="A naïve éclair", tags=["Lake Constance", "Winter"])
    post(title="東京タワー", content="東京tower ไก่ 한국어", tags=["日本"])


@pytest.mark.usefixtures("some")
@pytest.mark.parametrize(("q", "ids"), MATCHES)
def test_posts_are_found_by_their_words(found, q, ids):
    assert found(q) == ids


@pytest.mark.usefixtures("some")
def test_a_search_combines_with_the_other_parameters(client, found):
    assert found("lake", status="published") == "1"
    assert found("lake", status="draft") == "2"
    assert found("lake", status="archived") == ""
    assert found("eclair", tag="lake CONSTANCE") == "2"
    assert found("fog", tag="lake constance") == ""
    assert found("lake", tag="lake") == ""
    assert found("lake", tag="winter", status="draft") == "2"
    assert found("lake", before="2") == "1"
    assert walk(client, "/v1/posts?q=la*+lak*&limit=1") == [["Café"], ["An der Straße am See"]]


@pytest.mark.parametrize("sorted_posts", [1, 100])  # what is found is met on the way through all, or sorted
@pytest.mark.parametrize("status", [None, *STATUSES])
@pytest.mark.parametrize("tag", [None, "a"])
def test_what_is_found_comes_by_date_as_all_posts_do(client, clock, post, monkeypatch, sorted_posts, status, tag):
    monkeypatch.setattr(sqlite, "SORTED_POSTS", sorted_posts)
    for number in range(32):
        word = "fog" if number % 3 else "sun"
        post(title=f"{word} {number}", tags=["a"] if number % 5 else [])
        time = rfc3339(clock.now + 60 * (number % 4 - 2))
        after = STATUSES[number % 4] if number < 28 else "draft"
        path, scheduled = f"/v1/posts/{number + 1}", time > rfc3339(clock.now)
        if after in ("published", "archived") and not scheduled:
            assert client.patch(path, json={"status": "published", "published_at": time}).status_code == 200
            assert client.patch(path, json={"status": after}).status_code == 200
        elif scheduled or after == "scheduled":
            time = rfc3339(clock.now + 60 * (1 + number % 2))
            assert client.patch(path, json={"status": "scheduled", "published_at": time}).status_code == 200
    filters = "".join(f"&{name}={value}" for name, value in (("status", status), ("tag", tag)) if value)
    for later in (0, 60):  # when some are due
        clock.now += later
        every = [title for page in walk(client, f"/v1/posts?sort=published_at{filters}") for title in page]
        pages = walk(client, f"/v1/posts?sort=published_at&limit=2&q=fo*{filters}")
        assert [title for page in pages for title in page] == [title for title in every if "fog" in title]
        assert all(len(page) == 2 for page in pages[:-1])


@pytest.mark.usefixtures("some")
def test_the_link_keeps_what_is_looked_for(client):
    answer = client.get("/v1/posts", query_string={"q": "LAK* &", "limit": 1})
    assert answer.headers["Link"] == '</v1/posts?limit=1&q=LAK%2A%20%26&before=2>; rel="next"'
    assert [len(page) for page in walk(client, "/v1/posts?limit=1&q=LAK%2A%20%26")] == [1, 1]


@pytest.mark.parametrize("q", ["*", '"', "-", " ", "🍳", "\u0301", "§¶", "_"])
def test_there_must_be_a_letter_or_a_digit(client, q):
    assert message(client.get("/v1/posts", query_string={"q": q})) == "q: must have a letter or a digit"


def test_a_search_is_a_text_of_1_to_200_characters(client):
    bounds = "q: must have 1 to 200 characters"
    assert message(client.get("/v1/posts?q=")) == bounds
    assert message(client.get("/v1/posts?q=" + "x" * 201)) == bounds
    characters = "q: must not contain control characters or unpaired surrogates"
    assert message(client.get("/v1/posts?q=a%00")) == characters
