"""Text: which characters are allowed, and which are visible."""

import re
import unicodedata

# Unpaired surrogates, and category Cc except tab, LF and CR: re has no \p{Cc}.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
CONTROL_OR_BREAK = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# What Unicode calls white space; str.strip() would also take some control characters, U+001C to U+001F.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))
MAX_FOLDED = 600  # characters of a name that are compared; a tag has fewer, even decomposed


def in_ascii(characters: re.Pattern) -> bytes:
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


def is_visible(character: str) -> bool:
    """Return whether a character is neither white space nor of category Z, Cc or Cf."""
    return not character.isspace() and unicodedata.category(character) not in ("Zs", "Zl", "Zp", "Cc", "Cf")
