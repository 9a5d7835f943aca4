"""How a file and its post differ, and each from what both came from."""

from collections.abc import Iterator
from difflib import unified_diff

from blogapi.wings.markdown.files import render
from blogapi.wings.sync.comparison import Comparison
from blogapi.wings.sync.remote import Post

MAX_LINES = 5000  # limit for both texts together: comparing takes quadratic time


def differences(comparison: Comparison, name: str) -> Iterator[str]:
    """Yield lines for the user. Raises RemoteError, NotSynced."""
    working, remote = comparison.working, comparison.working.remote
    entry, listed = working.entries.get(name), working.post_of.get(name)
    found = remote.post(listed["id"]) if listed else None
    there = found[0] if found else None
    base = working.ancestry.recorded_version(entry, remote.revisions(entry["id"]) or []) if entry and listed else None
    post = there or base
    here = comparison.pushed(comparison.fields(name), post) if post and name in working.items else None
    if base:
        yield from _compared(base, here, f"{name}, last synced", f"{name}, here")
        yield from _compared(base, there, f"{name}, last synced", f"{name}, there")
    else:
        yield from _compared(there, here, f"{name}, there", f"{name}, here")


def _compared(old: Post | None, new: Post | None, old_label: str, new_label: str) -> Iterator[str]:
    before, after = (render(post).decode().split("\n") if post else [] for post in (old, new))
    if len(before) + len(after) > MAX_LINES:
        yield f"{new_label}: it is too long to be compared"
    else:
        yield from unified_diff(before, after, old_label, new_label, lineterm="", n=2)
