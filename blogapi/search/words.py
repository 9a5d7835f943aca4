"""Split posts and searches into words.

A word is a run of letters, digits and their marks. Case, diacritics and strokes through letters are ignored. A special
letter matches the letters that people type instead (ae for æ). In scripts without spaces, every character is a word.

If you change these rules, increase the number after "words" in `UNICODE` in storage/setup.py. The service then indexes
all posts again when it starts.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

import regex

from blogapi.text import fold

compiled = partial(regex.compile, flags=regex.V1)  # V1 supports -- and && between sets of characters

# Scripts without spaces between words, and the marks that hiragana and katakana share
UNSPACED = r"\p{Han}\p{Hangul}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}ー\u3099\u309a"
CHARACTER_PATTERN = rf"[[\p{{L}}\p{{N}}\p{{M}}]&&[{UNSPACED}]]"  # a single character that is a word
WORD_PATTERN = rf"[[\p{{L}}\p{{N}}]--[{UNSPACED}]][[\p{{L}}\p{{N}}\p{{M}}]--[{UNSPACED}]]*|{CHARACTER_PATTERN}"
WORD, UNSPACED_CHARACTER = compiled(WORD_PATTERN), compiled(CHARACTER_PATTERN)
UNSPACED_RUN = compiled(rf"[[\u0e00-\U0010ffff]&&[{UNSPACED}]]+")
OTHERS, MARK = compiled(r"[^\p{L}\p{N}\p{M} ]+"), compiled(rf"[\p{{M}}--[{UNSPACED}]]")
# Text in quotes, or a run of words that may end with a star
PHRASE = compiled(rf'"([^"]*)"|((?:{WORD_PATTERN})+)(\*(?![\w*]))?')
# Combining classes of marks that are part of a letter: kana voicing marks, Asian vowel and tone marks, and the virama
OF_LETTERS = "".join(rf"\p{{ccc={number}}}" for number in (0, 7, 8, 9, 84, 91, 103, 107, 118, 122, 129, 130, 132))
DIACRITICS = compiled(rf"[[\p{{M}}--[{OF_LETTERS}]]\p{{Me}}\p{{Variation_Selector}}]+")
# Letters with a stroke, bar, hook or descender, which Unicode does not decompose, and the letters typed instead
PLAIN = dict(zip("ⱥƀȼđɇǥħɨɉꝁłƚⱡøɵᵽɍꞩŧⱦʉɏƶғҝҟұҹӿ", "abcdeghijklllooprsttuyzгккүчх", strict=True))
PLAIN |= dict(zip("ıȷɓɖɗƒƙŋɲƴəǝɛɔðґҗҙқңҫҭҳҷө", "ijbddfknnyeeeodгжзкнстхчо", strict=True))
PLAIN |= {"æ": "ae", "œ": "oe", "þ": "th", "ӕ": "ае"}  # The last letter is Cyrillic.
NOT_PLAIN = re.compile(f"[{''.join(PLAIN)}]")  # four times as fast as regex, ten times as fast as str.translate
# Marks and the characters that NFKD converts to marks. NFKD takes quadratic time to sort a run of marks.
SORTED = r"[[\p{M}--\p{ccc=0}]\u0f73\u0f75\u0f81\uff9e\uff9f]"
LONG_RUN = compiled(f"({SORTED}{{4}}){SORTED}+")
# A ligature and its replacement. NFKD would convert the ligature to 18 characters, and take seconds for a million.
LONGEST = "\ufdfa", "\u0635\u0644\u0649"
MAX_WORD = 500  # maximum length of a word (in characters); PostgreSQL indexes only words of at most 2,046 bytes
MAX_INDEXED = 100_000  # maximum number of characters in a post's content, and of words in a string
MAX_DECOMPOSED = 4 * MAX_INDEXED  # in characters; NFKD makes Hangul three times as long
MAX_DIFFERENT = 8_000  # maximum number of distinct words in a string; replacing all of them takes 20 ms on SQLite
LARGE = 32 * 1024  # content longer than this is split into words before the transaction begins
START = "§"  # precedes the first letter of a word, for searches such as f*; merging all words with f would take seconds
TAG = "¶"  # precedes a whole tag in hexadecimal digits, for searches with `tag`
BETWEEN = "·"  # separates two strings, so that no phrase matches across them
ASCII_WORDS = "".join(chr(byte).lower() if chr(byte).isalnum() else " " for byte in range(128)).encode().ljust(256)


# The words of a string


def split(text: str) -> list[str]:
    """Return the words in a string, in order."""
    if text.isascii():
        return text.encode().translate(ASCII_WORDS).decode().split()
    folded = _fold(text)
    if MARK.search(folded):  # No word begins with a mark.
        return WORD.findall(folded)
    spaced = UNSPACED_RUN.sub(lambda match: f" {' '.join(match[0])} ", OTHERS.sub(" ", folded))
    return spaced.split()  # three times as fast as WORD.findall


def _fold(text: str) -> str:
    """Return a string in lower case, without diacritics, and with special letters replaced."""
    text = LONG_RUN.sub(r"\1", DIACRITICS.sub("", text.replace(*LONGEST)))
    folded = DIACRITICS.sub("", unicodedata.normalize("NFKD", text)[:MAX_DECOMPOSED]).casefold()
    return unicodedata.normalize("NFC", NOT_PLAIN.sub(lambda match: PLAIN[match[0]], folded))


# The words of a search


class Phrase(NamedTuple):
    """Words that must occur in the order given, with no other word between them."""

    text: str  # the words, separated by spaces
    is_prefix: bool  # whether the last word is only the beginning of a word


def phrases(q: str) -> Iterator[Phrase]:
    """Yield the phrases in a search. A phrase is a string in quotes, or words without a space between them."""
    for quoted, run, star in PHRASE.findall(_fold(q)):
        if words := [word[:MAX_WORD] for word in WORD.findall(quoted or run)]:
            yield Phrase(" ".join(words), bool(star) and not UNSPACED_CHARACTER.match(words[-1]))


def of_search(q: str) -> list[Phrase]:
    """Return the distinct phrases to look up in the index for a search."""
    different = dict.fromkeys(phrases(q))
    return [Phrase(START + run.text, False) if run.is_prefix and len(run.text) == 1 else run for run in different]


# The words of a post

INDEXED_FIELDS = ("title", "excerpt", "content", "tags")  # the fields that `of_post` reads


def of_post(post: dict[str, Any]) -> tuple[str, str]:
    """Return the words of a post's title, and those of its excerpt, content and tags."""
    excerpt = [_indexed(post["excerpt"])] if post.get("excerpt") else []
    return _indexed(post["title"]), " ".join([*excerpt, of_content(post["content"]), *map(of_tag, post["tags"])])


def of_content(content: str) -> str:
    """Return the words of a post's content. The words of large content are cached briefly."""
    content = content[:MAX_INDEXED]
    return _of_large(content) if len(content) > LARGE else _indexed(content)


@lru_cache(maxsize=4000)
def of_tag(tag: str) -> str:
    """Return the words of a tag, and the word that stands for the whole tag."""
    return f"{_indexed(tag)} {tag_word(fold(tag))}"


def tag_word(tag: str) -> str:
    """Return the word that stands for a (folded) tag in the index."""
    return TAG + tag.encode().hex()


def _indexed(text: str) -> str:
    """Return the words of a string, and their first letters, as they are stored in the index."""
    words = [*split(text)[:MAX_INDEXED], BETWEEN]
    different = set(words)
    if len(different) > MAX_DIFFERENT:
        del words[words.index(next(islice(dict.fromkeys(words), MAX_DIFFERENT, None))) :]
        different = set(words)
    # A character that is a word by itself is never the first letter of a longer word.
    letters = UNSPACED_RUN.sub("", "".join({word[0] for word in different} - {BETWEEN}))
    if max(map(len, different)) > MAX_WORD:
        words = [word[:MAX_WORD] for word in words]
    return " ".join(words + [START + letter for letter in letters])


_of_large = lru_cache(maxsize=4)(_indexed)
