"""A title for a content that has none."""

import re

from blogapi.documents import MAX_TITLE
from blogapi.text import CONTROL_OR_BREAK, VISIBLE
from blogapi.wings.markdown.files import heading

CUT_TITLE = 80  # characters of a title that is the first line of the content
MAX_BEGINNING, MAX_LINE = 10_000, 500  # characters in which a title is looked for
MARKS = re.compile(r"^\s*([-*_]\s*){3,}$|!?\[([^\]]*)\]\([^)]*\)|^\s*(?:[#>]+|[-*+]|\d+[.)])(?:\s+|$)|[*_`~]+")


def title_of(content: str) -> str:
    """Return the heading of a content, or its first visible line without marks, cut at a word."""
    beginning = (line[:MAX_LINE] for line in content[:MAX_BEGINNING].splitlines())
    lines = (MARKS.sub(lambda match: match[2] or "", line).strip() for line in beginning)
    found = heading(content)
    line = found or next((line for line in lines if VISIBLE.search(line)), "")
    line = " ".join(CONTROL_OR_BREAK.sub(" ", line).split())
    longest = MAX_TITLE if found else CUT_TITLE
    return line if len(line) <= longest else line[: longest + 1].rpartition(" ")[0].strip() or line[:longest]
