"""Text: which characters are allowed, and which are visible."""

import unicodedata

import regex

# Control characters, unpaired surrogates, and the two others that XML cannot contain: a feed would be malformed
CONTROL = regex.compile(r"[[\p{Cc}\p{Cs}\uFFFE\uFFFF]--[\t\n\r]]", regex.V1)
CONTROL_OR_BREAK = regex.compile(r"[\p{Cc}\p{Cs}\uFFFE\uFFFF\u2028\u2029]")
FORBIDDEN = "control characters, unpaired surrogates, U+FFFE or U+FFFF"  # in words
VISIBLE = regex.compile(r"[^\p{Z}\p{Cc}\p{Cf}]")
# What Unicode calls white space; str.strip() would also take some control characters, U+001C to U+001F.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))
MAX_FOLDED = 600  # characters of a name that are compared; a tag has fewer, even decomposed


def in_ascii(characters: regex.Pattern) -> bytes:
    """Return the ASCII characters that a pattern matches."""
    return "".join(filter(characters.match, map(chr, range(128)))).encode()


def fold(name: str) -> str:
    """Return the name by which tags are compared: NFC of the case-folded NFC.

    The rest of a long name is not read: normalization takes quadratic time for a run of marks.
    """
    name = name[:MAX_FOLDED]
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
