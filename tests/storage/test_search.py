"""GET /posts?q=…: which words find which posts."""

import sqlite3
import threading
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogapi import create_app
from blogapi.clock import rfc3339
from blogapi.config import Config
from blogapi.loop import Loop
from blogapi.post import STATUSES
from blogapi.storage import posts, tags
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Post
from blogapi.storage.search import index
from blogapi.storage.search import queries as search
from blogapi.storage.search.words import BEYOND, DROPPED, DROPPED_BEYOND, VOICED, sequences, words
from blogapi.web.access import GRAIN_SECONDS
from tests.conftest import message
from tests.invariants import sound_posts
from tests.service import add_key
from tests.web.test_list import walk


@pytest.fixture
def found(client):
    """Search; return the ids of the posts that are found, as one word."""

    def found(q, **query):
        answer = client.get("/v1/posts", query_string={"q": q} | query)
        assert answer.status_code == 200, answer.text
        return "".join(post["id"] for post in answer.json)

    return found


# Words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("A post, at 10:30.", "a post at 10 30"),
        ("snake_case and kebab-case", "snake case and kebab case"),
        ("STRASSE Straße", "strasse strasse"),
        ("Café Cafe\u0301 Ǆ ﬁn", "cafe cafe dz fin"),
        ("İstanbul ᾼ", "istanbul α"),
        ("Ｆｕｌｌ № ½ x²", "full no 1 2 x2"),
        ("Ёж Й", "еж и"),
        ("हिन्दी", "हिनदी"),
        ("東京tower", "東 京 tower"),
        ("ガード ｶﾞ が", "ガ ー ド ガ が"),
        ("か\u3099 あ\u3099", "が あ \u3099"),
        ("한국 한국", "한 국 한 국"),
        ("ไก่ ລາວ ខ្មែរ", "ไ ก ລ າ ວ ខ ម ែ រ"),
        ("\u1019\u103c\u1014\u103a", "\u1019 \u103c \u1014"),
        ("❤\ufe0f 1\ufe0f\u20e3 👩\u200d🍳", "1"),
        ("a\u0336b\u0336", "ab"),
        ("\U00020000\U0002000b", "\U00020000 \U0002000b"),
        ("\U0001e900\U0001e94a", "\U0001e922"),
    ],
)
def test_words_are_folded(text, expected):
    assert " ".join(words(text)) == expected


@given(st.text())
def test_the_words_of_words_are_themselves(text):
    found = words(text)
    assert words(" ".join(found)) == found
    assert [word for word in found if not set(word).isdisjoint(index.START + index.OF_TAG + index.BETWEEN)] == []


@given(st.text(st.characters(max_codepoint=127)))
def test_a_text_in_ascii_is_split_like_any_other(text):
    assert words(text) == words(f"{text} é")[:-1]


def test_no_character_makes_a_run_of_marks_that_would_take_long_to_sort():
    for code in range(0x110000):
        rest = DROPPED.sub("", DROPPED_BEYOND.sub("", chr(code)))
        first = unicodedata.normalize("NFKD", rest)[:1]
        assert first in VOICED or not unicodedata.combining(first), hex(code)


# What finds what


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
    monkeypatch.setattr(search, "SORTED_POSTS", sorted_posts)
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


# A naive model: every query is compared with what the words of the posts say


ALPHABET = "aábBß12 \"*-_'()東京ター゛\u3099\u0301\u0336한\u1112\u1161กไ́🍳§¶·"
texts = st.text(st.sampled_from(ALPHABET), max_size=12)


def has(sequence, by_start, text):
    """Return whether a text has words in sequence."""
    inside = words(text)
    for start in range(len(inside) - len(sequence) + 1):
        part = tuple(inside[start : start + len(sequence)])
        if part == sequence or (by_start and part[:-1] == sequence[:-1] and part[-1].startswith(sequence[-1])):
            return True
    return False


@pytest.fixture(scope="module")
def module_database(tmp_path_factory):
    app = create_app(Config(database=tmp_path_factory.mktemp("search") / "blog.db"))
    yield app.extensions["blogapi"].database
    app.extensions["blogapi"].database.close()


@given(st.lists(st.tuples(texts, texts, st.lists(texts, max_size=2, unique=True)), min_size=1, max_size=4), texts)
def test_a_search_finds_just_the_posts_that_have_the_words(module_database, given_posts, q):
    database = module_database
    looked_for = list(sequences(q))
    if not looked_for:
        return
    expected = []
    first = database.row(posts._next, slug="")[0]
    for title, content, names in given_posts:
        fields = {"title": title, "content": content, "tags": names, "status": "draft"}
        post_id = database.write(posts.add, fields).id
        if all(any(has(*each, text) for text in (title, content, *names)) for each in looked_for):
            expected.insert(0, post_id)
    page = search.page(database, q, 1000)
    ids = [int(posts.documents.load(document)["id"]) for document in page.documents]
    assert [each for each in ids if each >= first] == expected


# What changes


def test_a_post_is_found_as_it_is_and_not_as_it_was(client, found, post):
    post(title="Alpha", content="one two", tags=["red"])
    post(title="Other", content="one")
    client.patch("/v1/posts/1", json={"content": "two three"})
    assert (found("one"), found("two"), found("three"), found("alpha"), found("red")) == ("2", "1", "1", "1", "1")
    client.patch("/v1/posts/1", json={"title": "Beta", "tags": ["green", "red"], "status": "published"})
    assert (found("alpha"), found("beta"), found("red"), found("green red")) == ("", "1", "1", "1")
    assert (found("two", status="draft"), found("two", status="published")) == ("", "1")
    client.put("/v1/posts/by-slug/alpha", json={"title": "Gamma", "content": "four", "excerpt": "Five"})
    assert (found("beta"), found("red"), found("two"), found("gamma four five")) == ("", "", "", "1")
    client.delete("/v1/posts/1")
    assert (found("gamma"), found("one")) == ("", "2")


def test_a_deleted_post_leaves_nothing_in_the_index(client, post, config):
    post(title="Straße 東京", content="Words", tags=["é"], excerpt="x")
    client.patch("/v1/posts/1", json={"tags": ["a", "b"]})
    client.delete("/v1/posts/1")
    assert sound_posts(config.database) == {}


def test_a_renamed_tag_is_found_by_its_new_name(client, found, post, config):
    for title in ("One", "Two"):
        post(title=title, tags=["Old name", "Kept"])
    client.patch("/v1/tags/old%20name", json={"name": "New name"})
    assert (found("old"), found("new name kept two"), found("one", tag="new name")) == ("", "2", "1")
    client.delete("/v1/tags/new%20name")
    assert (found("new"), found("kept")) == ("", "21")
    sound_posts(config.database)


def test_a_post_that_fails_is_not_found(client, found, post):
    post(slug="taken")
    assert client.post("/v1/posts", json={"title": "Words", "content": "x", "slug": "taken"}).status_code == 400
    assert found("x") == ""


def test_a_post_whose_time_has_come_is_found_as_published(client, found, post, clock, database, config):
    post(title="Early", status="published")
    post(title="Early and due", tags=["a"])
    post(title="Early and later", tags=["a"])
    later = ["2026-11-20T12:00:10Z", "2026-11-20T12:00:20Z"]
    for number, published_at in enumerate(later, 2):
        client.patch(f"/v1/posts/{number}", json={"status": "scheduled", "published_at": published_at})

    def ids(**query):
        return found("early", status="published", **query), found("early", status="scheduled", **query)

    assert (ids(), ids(tag="a")) == (("1", "32"), ("", "32"))
    clock.now += 10
    assert (ids(), ids(tag="a"), ids(before="3")) == (("21", "3"), ("2", "3"), ("21", ""))
    assert client.get("/v1/posts?q=due").json[0]["status"] == "published"
    database.write(posts.publish_due)
    assert (ids(), ids(tag="a")) == (("21", "3"), ("2", "3"))
    sound_posts(config.database)


def test_a_damaged_post_that_was_deleted_takes_no_place_on_a_page(client, found, post, database):
    for title in "abc":
        post(title=f"word {title}")
    database.write(lambda tx: tx.execute(Post.update(document="{").where(Post.id == 3)))
    assert client.delete("/v1/posts/3").status_code == 204
    assert found("word", limit="2") == "21"
    assert client.get("/v1/posts?q=word&limit=2").headers.get("Link") is None


def test_large_posts_end_a_page(client, post):
    for number in range(6):
        post(title=f"word {number}", content="x" * 1_000_000)
    assert [len(page) for page in walk(client, "/v1/posts?q=word")] == [5, 1]


# How


@pytest.mark.sqlite
@pytest.mark.parametrize("status", [None, *STATUSES])
def test_no_search_scans_or_sorts(database, status):
    text, parameters, _ = database.engine.statement(search._newest(status))
    values = [{"words": '"a"', "due": '"a"'}.get(getattr(each, "name", None), 1) for each in parameters]
    steps = [row[3] for row in database.engine.connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    if status == "published":  # The ids of the few that are due and not yet published are sorted.
        steps.remove("USE TEMP B-TREE FOR ORDER BY")
        steps.remove("SCAN t4 VIRTUAL TABLE INDEX 0:=M1")  # a search for one id
    steps.remove("SCAN t2 VIRTUAL TABLE INDEX 192:M1<")  # 192 is in descending order of the ids
    assert {step.split()[0] for step in steps} <= {"SEARCH", "MERGE", "LEFT", "RIGHT", "LIST"}, steps


@pytest.mark.usefixtures("some")
def test_a_search_takes_two_statements(client, statements):
    client.get("/v1/posts?q=fog")
    with statements() as collected:
        client.get("/v1/posts?q=fog")
    assert [each.split()[0] for each in collected if not each.startswith("--")] == ["SELECT", "SELECT"]


@pytest.mark.parametrize(
    ("query", "is_quick"),
    [
        ({"q": "fog"}, True),
        ({"q": "f*"}, True),
        ({"q": "fo*"}, False),
        ({"q": "fog lake"}, False),
        ({"q": '"fog lake"'}, False),
        ({"q": "fog lake sun"}, False),
        ({"q": "東京"}, False),
        ({"q": "fog", "filtered": True}, False),
        ({"q": "fog", "sort": "published_at"}, False),
    ],
)
def test_among_many_posts_a_search_that_can_take_long_runs_aside(database, client, query, is_quick):
    query = {"sort": "created_at", "filtered": False} | query
    assert search.is_quick(database, **query)
    many = {"id": search.QUICK_POSTS + 1, "slug": "a", "status": "draft", "document": "{}"}
    database.write(lambda tx: tx.execute(Post.insert(many)))
    assert search.is_quick(database, **query) is is_quick
    asked = {"q": query["q"], "sort": query["sort"]} | ({"status": "draft"} if query["filtered"] else {})
    assert client.get("/v1/posts", query_string=asked).json == []


def test_a_large_post_is_indexed_aside_and_found_like_any_other(client, database, found, post):
    aside = []

    def run_in_thread(function, arguments):
        aside.append(function)
        return function(*arguments)

    database.engine.loop = Loop()
    database.engine.loop.run_in_thread = run_in_thread
    large = {"title": "Large", "content": f"fog {'ü ' * index.LARGE} lake", "slug": "large"}
    assert client.post("/v1/posts", json=large, headers={"Idempotency-Key": "a"}).status_code == 201
    assert client.post("/v1/posts", json=large, headers={"Idempotency-Key": "a"}).json["id"] == "1"
    post(title="Small", content="fog")
    assert (found("fog"), found("lake"), len(aside)) == ("21", "1", 1)
    assert client.patch("/v1/posts/1", json={"title": "Still large"}).status_code == 200
    assert client.patch("/v1/posts/1", json={"tags": ["sun"], "status": "draft"}).status_code == 200
    assert (found("still"), found("sun"), len(aside)) == ("1", "1", 2)
    assert client.patch("/v1/posts/1", json={"content": "sun", "tags": []}).status_code == 200
    assert (found("fog"), found("sun"), found("still"), len(aside)) == ("2", "1", "1", 3)
    assert client.put("/v1/posts/by-slug/large", json=large | {"title": "Back"}).status_code == 200
    assert client.delete("/v1/posts/1").status_code == 204
    assert (found("fog"), found("lake"), len(aside)) == ("2", "", 5)


@pytest.mark.parametrize("q", ["a b c d", '"a a a a"', "ab* cd* ef* gh*"])
def test_a_search_for_many_words_runs_aside_however_few_posts_there_are(database, q):
    assert not search.is_quick(database, q, "created_at", filtered=False)


def test_searches_of_one_client_do_not_keep_another_waiting(database):
    running, done = threading.Event(), []

    def look(reader, client):
        running.wait(10)
        done.append(client)

    with ThreadPoolExecutor(21) as pool:
        for _ in range(20):
            pool.submit(database.read_in_thread, "many", look, "many")
        other = pool.submit(database.read_in_thread, "one", look, "one")
        while not database._turns["one"].locked():
            pass
        running.set()
        other.result(10)
    assert (done.count("many"), done.count("one")) == (20, 1)
    assert done.index("one") < 10


def test_a_search_takes_a_published_only_key_even_time(client, database, post):
    for number in range(3):
        post(title=f"{'fog ' * 50}{number}")
    site = add_key(database, "site", scope="published-only")
    for q in ('"fog fog fog fog fog"', "sun"):
        started = time.monotonic()
        answer = client.get("/v1/posts", query_string={"q": q}, headers={"Authorization": f"Bearer {site}"})
        assert answer.json == []
        assert time.monotonic() - started > GRAIN_SECONDS


# The index


def test_words_of_another_unicode_are_made_anew(config, database, client, found, post):
    post(title="Fog")
    database.close()
    with closing(sqlite3.connect(config.database, isolation_level=None)) as other:
        other.execute("UPDATE search_made SET unicode = '1.0'")
        other.execute("INSERT INTO search (rowid, words) VALUES (1, 'left')")
    with pytest.raises(Unavailable, match="blogapi init"):
        database.engine.open(upgrade=False)
    assert database.engine.open() is False
    assert (found("fog"), found("left")) == ("1", "")


def test_a_large_index_is_made_with_a_line_of_progress(config, database, post, monkeypatch, caplog):
    for title in ("One", "Two", "Three"):
        post(title=title)
    monkeypatch.setattr(index, "PROGRESS", 2)
    with database.engine.connection as connection:
        index.make(connection)
    assert caplog.messages == ["2 of 3 posts are indexed"]
    sound_posts(config.database)


def test_a_damaged_post_with_more_words_than_were_indexed_can_be_deleted(client, post, found, database):
    made = post(title="One")
    document = posts.documents.dump(made | {"content": "many " * 100})
    database.write(lambda tx: tx.execute(Post.update(document=document).where(Post.id == 1)))
    assert client.delete("/v1/posts/1").status_code == 204
    assert post(title="Two")["id"] == found("two")


def test_only_labels_are_written_where_only_they_change():
    old = {"title": "Fog", "content": "x" * 1000, "status": "draft", "tags": ["a"]}
    assert index.joined(index.changed_parts(old, old)) == ("", "")
    removed, added = index.joined(index.changed_parts(old, old | {"status": "published"}))
    assert set(removed.split()) ^ set(added.split()) == {"¦draft", "¦published"}
    assert tags.fold("a").encode().hex() in removed


def test_dropped_marks_are_told_apart_by_their_size():
    assert max(DROPPED.pattern[1:-2]) < BEYOND <= min(DROPPED_BEYOND.pattern[1:-2].replace("-", ""))
