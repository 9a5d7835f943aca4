"""The words of a text."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blogapi import documents
from blogapi.paging import ListQuery
from blogapi.posts import storage as posts
from blogapi.search import storage as search
from blogapi.search.words import BETWEEN, DIACRITICS, LONG_RUN, START, of_post, phrases, split
from blogapi.storage.models import Author
from tests.cases import cases
from tests.timing import is_linear, memory_limit


@cases(
    ("text", "expected"),
    ("", ""),
    ("A post, at 10:30.", "a post at 10 30"),
    ("snake_case and kebab-case", "snake case and kebab case"),
    ("STRASSE Straße", "strasse strasse"),
    ("Café Cafe\u0301 Ǆ ﬁn", "cafe cafe dz fin"),
    ("İstanbul ᾼ", "istanbul α"),
    ("Ｆｕｌｌ № ½ x²", "full no 1 2 x2"),
    ("Ёж Й", "еж и"),
    ("हिन्दी क्या कया", "हिन्दी क्या कया"),
    ("東京tower", "東 京 tower"),
    ("ガード ｶﾞ が", "ガ ー ド ガ が"),
    ("か\u3099 あ\u3099", "が あ \u3099"),
    ("한국 한국", "한 국 한 국"),
    ("ไก่ ລາວ ខ្មែរ", "ไ ก ่ ລ າ ວ ខ ្ ម ែ រ"),
    ("ดุ ดู ຸ ູ", "ด ุ ด ู ຸ ູ"),
    ("བོད་ཡིག", "བོད ཡིག"),
    ("שָׁלוֹם العَرَبِيَّة", "שלום العربية"),
    ("\u1019\u103c\u1014\u103a", "\u1019 \u103c \u1014 \u103a"),
    ("❤\ufe0f 1\ufe0f\u20e3 👩\u200d🍳", "1"),
    ("a\u0336b\u0336", "ab"),
    ("Łódź SMØRREBRØD Ǿ Đakovo", "lodz smorrebrod o dakovo"),
    ("Ħamrun Ŧ ƶɨ ғұҟ", "hamrun t zi гүк"),
    ("ışık IŞIK Diyarbakır Fərid Ƙwai", "isik isik diyarbakir ferid kwai"),
    ("Ærø ǽ œuvre Þórður Sápmi Eŋgal", "aero ae oeuvre thordur sapmi engal"),
    ("Қазақ Ґанок Өмір", "казак ганок омір"),
    ("\U00020000\U0002000b", "\U00020000 \U0002000b"),
    ("\U0001e900\U0001e944", "\U0001e922"),
)
def test_words_are_folded(text, expected):
    assert " ".join(split(text)) == expected


@given(st.text())
def test_splitting_words_again_gives_the_same_words(text):
    found = split(text)
    assert split(" ".join(found)) == found
    assert [word for word in found if not set(word).isdisjoint(START + BETWEEN)] == []


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_text_is_split_like_any_other(text):
    assert split(text) == split(f"{text} é")[:-1]


def test_no_character_expands_to_a_run_of_marks_that_takes_long_to_sort():
    for character in map(chr, range(0x110000)):
        if unicodedata.decomposition(character) or unicodedata.combining(character):  # Hangul begins with a letter.
            rest = DIACRITICS.sub("", character)
            first = unicodedata.normalize("NFKD", rest)[:1]
            assert not first or not unicodedata.combining(first) or LONG_RUN.fullmatch(5 * rest), hex(ord(character))


@cases("text", ["\u0e48\u0e38", "\u0f73", "\uff9e\u0f72", "\u0301\u0300", "㌖", "\ufdfa", "a\u0336"])
def test_splitting_a_text_takes_linear_time(text):
    assert is_linear(lambda length: split(text * (length // len(text))), 200_000)


# A naive model: every search is compared with the words of every post


ALPHABET = "aábBß12 \"*-_'()東京ター゛\u3099\u0301\u0336한\u1112\u1161กไ́🍳§¶·"
texts = st.text(st.sampled_from(ALPHABET), max_size=12)


def has(sequence, by_start, text):
    """Return whether a text has words in sequence."""
    inside, sequence = split(text), tuple(sequence.split())
    for start in range(len(inside) - len(sequence) + 1):
        part = tuple(inside[start : start + len(sequence)])
        if part == sequence or (by_start and part[:-1] == sequence[:-1] and part[-1].startswith(sequence[-1])):
            return True
    return False


@pytest.mark.sqlite
@given(st.lists(st.tuples(texts, texts, st.lists(texts, max_size=2, unique=True)), min_size=1, max_size=4), texts)
def test_a_search_finds_exactly_the_posts_with_the_words(database, given_posts, q):
    looked_for = list(phrases(q))
    if not looked_for:
        return
    expected = []
    created = []
    for title, content, names in given_posts:
        fields = {"title": title, "content": content, "tags": names, "status": "draft"}
        created.append(database.write(posts.add, fields, Author("first")).id)
        if all(any(has(*each, text) for text in (title, content, *names)) for each in looked_for):
            expected.insert(0, created[-1])
    page = search.page(database, ListQuery(1000, q=q), "tests")
    ids = [int(documents.load(document)["id"]) for document in page.items]
    assert [each for each in ids if each in created] == expected


def test_the_words_of_a_large_post_are_found_in_a_few_megabytes():
    post = {"title": "Many words", "content": "漢字" * 100_000, "tags": []}
    with memory_limit(12_000_000):
        _, found = of_post(post)
    assert found.count("漢") == 50_000
