"""GET /posts?q=…: which words find which posts, in which order."""

from itertools import product

import pytest

from blogapi.clock import rfc3339
from blogapi.documents import STATUSES
from blogapi.search import storage as search
from tests.api.fixtures import in_pages, walk
from tests.cases import cases
from tests.conftest import NOON, message

FOUND = {  # queries that find post 1, post 2, and so on; see `some`
    "1": [
        "fog", "FOG", "lake fog", "strasse", "STRAẞE",
        "f*", "fo*", "fog*", "stras* l*", "(stras*), l*.",
        '"fog over"', '"over the lake"', '"fog over" "the lake"', 'lake"fog"', '"FOG, over!"',
        "fog-lake", "^fog", "fog + over", "-fog", "(fog", "fog)", "fog'", '"fog', 'fog"', '"""fog', '""fog""',
        "fo* *", "* fog *", "🍳 fog", "fog\t\nlake",
    ],
    "2": ["cafe", "CAFÉ", "naive", "e\u0301clair", "cons*", "co*", '"lake constance"', "a " * 100],
    "21": ["lake", "la*", "lak*", "＊lak＊", "¶lake"],
    "3": [
        "東京", "東", "東京タワー", "東京 ワー", "東京tower", "京tower", "東京to*", "東*", "ﾀﾜｰ", "ไก", "ไก่", "한국",
    ],
    "": [
        "fo", "zz*", "京都", "京東", "tower東", "กไ", "ไก้", "국한",
        '"over fog"', '"excerpt lake"',
        '"see fog"',  # title and content
        '"constance winter"',  # two tags
        "fog OR cafe", "fog AND lake", "fog NOT cafe", "NOT fog", "NEAR(fog lake)", "words:fog", "words : fog",
        "{words} : fog", "' OR 1=1 --fog",
        "f*g", "fo**", '"fo*"', '"fog over the la"*', "fo *", "draft", "published", "§fo", "x" * 200,
    ],
}  # fmt: skip


@pytest.fixture
def some(post):
    post(title="An der Straße am See", content="Fog over\nthe lake.", status="published", excerpt="Excerpt")
    post(title="Café", content="A naïve éclair", tags=["Lake Constance", "Winter"])
    post(title="東京タワー", content="東京tower ไก่ 한국어", tags=["日本"])


def test_posts_are_found_by_their_words(found, some):
    expected = {q: ids for ids, queries in FOUND.items() for q in queries}
    assert {q: found(q) for q in expected} == expected


def test_letters_without_a_decomposition_are_found_by_what_people_type_for_them(found, post):
    post(title="Işık", content="Une œuvre", tags=["Þórður"])
    for q in ("ışık", "isik", "ISIK", "IŞIK", "oeuvre", "œuvre", "thordur", "þordur", "thor*", '"une oeuvre"'):
        assert found(q) == "1", q
    assert found("oe") == ""


def test_a_search_combines_with_the_other_parameters(client, found, some):
    assert [found("lake", status=status) for status in ("published", "draft", "archived")] == ["1", "2", ""]
    assert (found("eclair", tag="lake CONSTANCE"), found("fog", tag="lake constance")) == ("2", "")
    assert (found("lake", tag="lake"), found("fog", tag="\x01")) == ("", "")
    assert found("lake", tag="winter", status="draft") == "2"
    assert found("lake", before="2") == "1"
    assert walk(client, "/v1/posts?q=la*+lak*&limit=1") == [["Café"], ["An der Straße am See"]]


def test_results_by_date_are_in_the_order_of_the_list(client, clock, post):
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
    statuses = ("", *(f"&status={status}" for status in STATUSES))
    for later, status, tag in product((0, 60), statuses, ("", "&tag=a")):  # After a minute, some are due.
        clock.now = NOON + later
        filters = status + tag
        every = in_pages(client, f"/v1/posts?sort=published_at{filters}", 20)
        found = in_pages(client, f"/v1/posts?sort=published_at&q=fo*{filters}", 2)
        assert found == [title for title in every if "fog" in title], filters


@cases(
    ("q", "wrong"),
    *((q, "must have a letter or a digit") for q in ("*", '"', "-", " ", "🍳", "\u0301", "§¶", "_")),
    ("", "must have 1 to 200 characters"),
    ("x" * 201, "must have 1 to 200 characters"),
    ("a\0", "must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF"),
)
def test_a_search_without_words_or_with_a_wrong_length_is_refused(client, q, wrong):
    assert message(client.get("/v1/posts", query_string={"q": q})) == f"q: {wrong}"


def test_old_posts_are_found_like_new_ones(database, found, post, add):
    post(title="Red fox", content="In the snow.", status="published", tags=["a"])
    post(title="Fox red", content="In the fog.")
    post(title="Long", content="red fox " + "слово " * 15_000, status="published", tags=["a"])
    for _ in range(search.FIRST_READ):
        add(title="Other", status="published")
    assert (found("red fox"), found('"red fox"'), found('"fox red"'), found("fo* snow")) == ("321", "31", "2", "1")
    assert (found("red fox", status="published"), found("red fox", status="draft")) == ("31", "2")
    assert (found("red", tag="a"), found("fog", tag="a"), found("слово red")) == ("31", "", "3")
    assert found("red fox", sort="relevance") == "213"
