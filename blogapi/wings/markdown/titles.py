"""Find a title for content without one."""

import re

from blogapi.documents import MAX_TITLE
from blogapi.text import CONTROL_OR_BREAK, VISIBLE
from blogapi.wings.markdown.files import heading

CUT_TITLE = 80  # characters of a title made from the first line
MAX_BEGINNING, MAX_LINE = 10_000, 500  # characters of the content, and of a line, that are searched
MARKS = re.compile(r"^\s*([-*_]\s*){3,}$|!?\[([^\]]*)\]\([^)]*\)|^\s*(?:[#>]+|[-*+]|\d+[.)])(?:\s+|$)|[*_`~]+")


def title_of(content: str) -> str:
    """Return the first heading, or the first visible line without its marks, cut at a word."""
    beginning = (line[:MAX_LINE] for line in content[:MAX_BEGINNING].splitlines())
    lines = (MARKS.sub(lambda match: match[2] or "", line).strip() for line in beginning)
    found = heading(content)
    line = found or next((line for line in lines if VISIBLE.search(line)), "")
    line = " ".join(CONTROL_OR_BREAK.sub(" ", line).split())
    longest = MAX_TITLE if found else CUT_TITLE
    return line if len(line) <= longest else line[: longest + 1].rpartition(" ")[0].strip() or line[:longest]
