"""The relation of a file to its post: whether both say the same, and which of them has changed since the last sync."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from difflib import unified_diff

from blogapi.clock import rfc3339
from blogapi.documents import is_slug
from blogapi.posts import storage as posts
from blogapi.storage.errors import Rejected
from blogapi.wings.markdown.files import render
from blogapi.wings.sync.client import Conflict
from blogapi.wings.sync.decisions import ABSENT, CHANGED, HINTS, REWOUND, SAME, Action, decide, reason
from blogapi.wings.sync.edit import MAX_DIFF_LINES
from blogapi.wings.sync.remote import Post
from blogapi.wings.sync.state import Entry, fingerprint, identity
from blogapi.wings.sync.working import CHANGING, Result, WorkingFolder
from blogapi.wings.transfer.importer import schema
from blogapi.wings.transfer.items import Item

MOVED = "{} is gone, and {} has the same slug: if it is that file, write `slug: {}` into it, else another slug"


class Comparison:
    """Compares the files in a folder with their posts."""

    def __init__(self, working: WorkingFolder):
        self.working, self.entries, self.items = working, working.entries, working.items

    # What a file says

    def item_of(self, name: str, data: bytes) -> Item:
        """Return the post that a file would contain with these bytes. Raises MarkdownError, ValidationError."""
        item = self.working.files.sources.item_of(data, self.working.top / name, self.working.top)
        assert item  # No post has the status "trash".
        slug = item.fields.pop("slug")  # It can be inferred from the file name, and be invalid.
        return replace(item, fields=schema.load(item.fields) | {"slug": slug})

    def fields(self, name: str, item: Item | None = None) -> Post:
        """Return the fields of a file. The slug counts only if it is in the front matter: files may be renamed."""
        item = item or self.items[name]
        fields = {field: value for field, value in item.fields.items() if field != "slug"}
        own = str(item.file.values.get("slug", ""))
        is_own = own == item.fields["slug"] or (name in self.entries and is_slug(own))
        return fields | ({"slug": own} if own and is_own else {})

    def pushed(self, fields: Post, post: Entry) -> Post | None:
        """Return a post as it would be after a push of these fields; None if they would be refused."""
        now = rfc3339(self.working.client.now)
        if post["status"] == "scheduled" and post.get("published_at", "") <= now:
            post = post | {"status": "published"}
        with suppress(Rejected):
            return posts.as_put(post, fields, now)
        return None

    def says_same(self, fields: Post, post: Entry) -> bool:
        """Return whether a push of these fields would not change a post."""
        pushed = self.pushed(fields, post)
        return pushed is not None and fingerprint(pushed) == post["fingerprint"]

    def is_same(self, name: str, post: Entry | None) -> bool:
        """Return whether a file says the same as a post."""
        return bool(post and name in self.items and self.says_same(self.fields(name), post))

    def lacking(self, name: str, current: Entry) -> set[str]:
        """Return the fields of the post that the file must contain: a folder without its state would lose them."""
        if name not in self.items:
            return set()
        known = self.entries.get(name, current), self.items[name].fields
        names = filter(current.get, ("slug", "status", "published_at"))
        return {field for field in names if all(current[field] != each.get(field) for each in known)}

    # What to do

    def decide(self, name: str, current: Entry | None) -> tuple[Action, str]:
        """Return what to do with a file and its current post, and why they conflict, if they do. Raises Conflict."""
        entry, exists = self.entries.get(name), self.working.folder.exists(name)
        if not exists and name in self.working.sha256:
            raise Conflict(CHANGING)
        if current and (other := self.working.holders.get(identity(current), name)) != name:
            if other in self.working.heirs:
                raise Conflict(MOVED.format(other, "it", current["slug"]))
            raise Conflict(f"{other} has the slug {current['slug']}, too")
        if current and not exists and (heir := self.working.heirs.get(name)):
            raise Conflict(MOVED.format("it", heir, current["slug"]))
        if current and entry and identity(current) != identity(entry):
            raise Conflict(f"its post is gone, and another post has the slug {current['slug']}")
        local = (SAME if self.is_same(name, entry) else CHANGED) if exists else ABSENT
        remote = CHANGED if current else ABSENT
        if current and entry and current["fingerprint"] == entry["fingerprint"]:
            remote = SAME
        elif entry and not self.working.ancestry.is_successor(entry, current, ask=local is SAME):
            remote = REWOUND
        alike = exists and self.is_same(name, current)
        lacks = bool(alike and current and self.lacking(name, current))
        action = decide(local, remote, is_recorded=bool(entry), alike=alike, lacks=lacks)
        return action, reason(local, remote, entry, current) if action is Action.CONFLICT else ""

    def leave(self, name: str, current: Entry | None, action: Action, why: str) -> Result:
        """Return the result for a file that this command does not change; record it if it matches. Raises Conflict."""
        entry = self.entries.get(name)
        if action is Action.CONFLICT:
            raise Conflict(why)
        if action is Action.RECORD and current:
            self.working.record(name, current)
        elif entry and current and entry["fingerprint"] == current["fingerprint"]:  # It may have been touched.
            self.working.record(name, current, entry["sha256"])
        elif action is Action.FORGET:
            self.working.forget(name)
        outcome, hint = HINTS.get(action, ("unchanged", ""))
        return Result(outcome, name, hint)


def differences(comparison: Comparison, name: str) -> Iterator[str]:
    """Yield how a file and its post differ, and each from what was last synced. Raises RemoteError, NotSynced."""
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
    if len(before) + len(after) > MAX_DIFF_LINES:
        yield f"{new_label}: it is too long to be compared"
    else:
        yield from unified_diff(before, after, old_label, new_label, lineterm="", n=2)
