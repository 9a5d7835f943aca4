"""How a file and its post differ, and each from what both came from."""

from collections.abc import Iterator
from contextlib import suppress
from difflib import unified_diff

from blogapi.clock import rfc3339
from blogapi.posts import storage as posts
from blogapi.storage.errors import Rejected
from blogapi.wings.markdown.files import render
from blogapi.wings.transfer.remote import Post
from blogapi.wings.transfer.working import WorkingFolder

MAX_LINES = 5000  # of both texts: comparing them takes quadratic time


def differences(working: WorkingFolder, name: str) -> Iterator[str]:
    """Yield lines for the user. Raises RemoteError, Left."""
    entry, listed = working.entries.get(name), working.post_of.get(name)
    found = working.remote.post(listed["id"]) if listed else None
    base = working.remote.revision(entry["id"], entry["updated_at"]) if entry and listed else None
    there, here = found[0] if found else None, _in_file(working, name, found[0] if found else base)
    if base:
        yield from _compared(base, here, f"{name}, last synced", f"{name}, here")
        yield from _compared(base, there, f"{name}, last synced", f"{name}, there")
    else:
        yield from _compared(there, here, f"{name}, there", f"{name}, here")


def _in_file(working: WorkingFolder, name: str, post: Post | None) -> Post | None:
    """Return the post that a push of a file would make of a post."""
    if name not in working.items or not post:
        return None
    with suppress(Rejected):
        return posts.as_put(post, working.fields(name), rfc3339(working.client.now))
    return None


def _compared(old: Post | None, new: Post | None, old_label: str, new_label: str) -> Iterator[str]:
    before, after = (render(post).decode().split("\n") if post else [] for post in (old, new))
    if len(before) + len(after) > MAX_LINES:
        yield f"{new_label}: it is too long to be compared"
    else:
        yield from unified_diff(before, after, old_label, new_label, lineterm="", n=2)
