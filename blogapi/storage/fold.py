"""When two tags are the same."""

import unicodedata


def fold(name: str) -> str:
    """Return what decides whether two tags are the same: NFC of the case-folded NFC."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
