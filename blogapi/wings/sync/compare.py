"""Decide how to sync each file with its post. Push and pull share one decision table."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import unified_diff
from enum import Enum, auto
from itertools import chain

from blogapi.clock import rfc3339
from blogapi.markdown.files import render
from blogapi.posts.publication import as_put, unscheduled
from blogapi.storage.errors import Rejected
from blogapi.wings.sync.client import Conflict, Post, Remote, RemoteError, fingerprint, images_in
from blogapi.wings.sync.edit import MAX_DIFF_LINES
from blogapi.wings.sync.folder import CHANGING, Result, WorkingFolder, failed, slug_in
from blogapi.wings.sync.matching import Ancestry, Assignment, Posts, is_as_recorded, place_entries
from blogapi.wings.sync.state import SyncState, identity

MAX_GONE = 5  # refuse to delete if more than this many files or posts are gone, and more than half of all


class Side(Enum):
    """How a file or a post compares with its record. Without a record, it is CHANGED if it exists, and SAME if not."""

    ABSENT = auto()
    SAME = auto()
    CHANGED = auto()
    REWOUND = auto()  # a post that does not descend from its record: a backup was restored


class Action(Enum):
    """The only safe step for a file and its post. Some steps are taken only by a push, others only by a pull."""

    NOTHING = auto()
    RECORD = auto()  # both sides have the same content
    FORGET = auto()
    SEND = auto()  # only a push takes this step and the next
    TRASH = auto()
    WRITE = auto()  # only a pull takes this step and the next
    UNLINK = auto()
    CONFLICT = auto()


ABSENT, SAME, CHANGED, REWOUND = Side

TABLE = {  # state of the file -> state of its post -> action
    ABSENT: {ABSENT: Action.FORGET, SAME: Action.TRASH, CHANGED: Action.CONFLICT, REWOUND: Action.CONFLICT},
    SAME: {ABSENT: Action.UNLINK, SAME: Action.NOTHING, CHANGED: Action.WRITE, REWOUND: Action.CONFLICT},
    CHANGED: {ABSENT: Action.CONFLICT, SAME: Action.SEND, CHANGED: Action.CONFLICT, REWOUND: Action.CONFLICT},
}
HINTS = {  # the outcome and a hint for each action that is left to the other command
    Action.SEND: ("changed here", "push sends it"),
    Action.TRASH: ("gone here", "push --delete moves its post to the trash, pull --theirs restores the file"),
    Action.WRITE: ("changed there", "pull writes it"),
    Action.UNLINK: ("gone there", "pull --delete removes the file, push --recreate creates the post again"),
}
WAYS_OUT = "push --overwrite keeps the file, pull --theirs the post"
BACK = "its post went back to an earlier version, as if a backup had been restored"
REASONS = {
    (ABSENT, CHANGED): "it is gone here, but its post has changed: pull --theirs restores the file",
    (ABSENT, REWOUND): f"it is gone here, and {BACK}: pull --theirs restores the file",
    (CHANGED, ABSENT): "it has changed here, but its post is gone: push --recreate creates it again",
    (CHANGED, CHANGED): f"it has changed on both sides: {WAYS_OUT}",
}
LOST = (
    "its post is gone and not in the trash (it was deleted permanently, or a backup was restored):"
    " push --recreate creates it again, or delete the file"
)


def decide(local: Side, remote: Side, *, alike: bool = False, lacks: bool = False) -> Action:
    """Return what to do. `alike`: both sides count as equal; with `lacks`, because the file omits a changed field."""
    if alike:
        return Action.WRITE if lacks else Action.RECORD
    return TABLE[local][remote]


def reason(local: Side, remote: Side, entry: Mapping | None, post: Mapping | None) -> str:
    """Return why a file and its post conflict, and what the user can do about it. `entry` is their record."""
    if post and not entry:
        return f"the post {post['slug']} differs from the file: {WAYS_OUT}"
    return REASONS.get((local, remote)) or (f"{BACK}: {WAYS_OUT}" if post else LOST)


def list_posts(remote: Remote, state: SyncState, moves: bool) -> Posts:
    """List the posts. If none of them is recorded, raise RemoteError, or drop all entries if `moves` is true."""
    posts = {identity(post): post for post in remote.posts()}
    if posts.keys().isdisjoint(map(identity, state.entries.values())):
        if moves:
            state.entries.clear()
        elif state.entries and posts and remote.scope != "published-only":
            way = f"--move-to {remote.url} compares all files with it"
            raise RemoteError(f"{remote.url} has none of the recorded posts: {way}")
    return posts


class Comparison:
    """The files in a folder, and the listed posts of a service."""

    def __init__(self, working: WorkingFolder, remote: Remote, posts: Posts, zone: str):
        self.working, self.remote, self.posts = working, remote, posts
        self.entries, self.items = working.entries, working.items
        renames = place_entries(working)
        assigned = Assignment(working, posts)
        self.post_of, self.holders, self.unclear = assigned.post_of, assigned.holders, assigned.unclear
        now = rfc3339(working.now)
        self.ancestry = Ancestry(self.entries.values(), posts, remote, now)
        self.results = [Result("renamed", name, f"was {old}") for name, old in renames.items()]
        for failure in working.failures:  # A failure is counted only once until its file changes.
            is_known = working.state.unreadable.get(failure.source) == working.unreadable[failure.source]
            self.results.append(failed(failure, "skipped" if is_known else "failed"))
        self.results += map(failed, assigned.failures)
        known = {*self.post_of, *working.left_out, *working.unreadable, *renames.values()}
        self.results += [Result("failed", name, "no such file to sync") for name in sorted(working.only - known)]
        working.state.start(remote.url, zone, working.unreadable, now, bool(renames))
        for name, entry in [*self.entries.items()]:
            if entry["sha256"] != working.sha256.get(name) and self.is_same(name, entry):
                working.record_bytes(name)  # The bytes have changed, but not the content.

    def chosen(self, names: Iterable[str]) -> list[str]:
        """Return the files that the user has asked to sync."""
        return [name for name in names if not self.working.only or name in self.working.only]

    def with_posts(self, names: Iterable[str]) -> Iterator[tuple[str, Post | None]]:
        """Yield each file with its post: the entry if it is current, else the fetched post, if there is one."""
        to_fetch = defaultdict(list)
        for name in names:
            entry, listed = self.entries.get(name), self.post_of.get(name)
            if entry and is_as_recorded(self.posts, entry) and not self.moved_images(name, entry):
                yield name, entry
            else:
                to_fetch[listed["id"] if listed else ""].append(name)
        for post in self.remote.fetch(to_fetch.keys() - {""}):
            for name in to_fetch.pop(post["id"], ()):
                yield name, post
        for name in chain(*to_fetch.values()):
            yield name, None

    def refuse_many(self, gone: Collection[str], others: Collection, what: str) -> None:
        """Refuse to delete most posts or files, because a disk may be missing. Raises RemoteError."""
        if (len(gone) > MAX_GONE or not others) and 2 * len(gone) > len(self.entries):
            raise RemoteError(f"{len(gone)} of {len(self.entries)} {what} are gone: if that is right, use --delete-all")

    # The content of a file

    def fields(self, name: str) -> Post:
        """Return the fields of a file, without a slug that comes only from its name, because files may be renamed."""
        item = self.items[name]
        has_slug = slug_in(item) == item.fields["slug"]
        return {field: value for field, value in item.fields.items() if field != "slug" or has_slug}

    def pushed(self, fields: Post, post: Post) -> Post | None:
        """Return a post as a push of these fields would leave it, or None if the service would refuse them."""
        now = rfc3339(self.working.now)
        with suppress(Rejected):
            return as_put(unscheduled(post, now, is_published=True), fields, now)
        return None

    def is_no_op(self, fields: Post, post: Post) -> bool:
        """Return whether a push of these fields would leave a post unchanged."""
        pushed = self.pushed(fields, post)
        return pushed is not None and fingerprint(pushed) == post["fingerprint"]

    def is_same(self, name: str, post: Post | None) -> bool:
        """Return whether a file has the same content as a post."""
        return bool(post and name in self.items and self.is_no_op(self.fields(name), post))

    def lacking(self, name: str, current: Post) -> set[str]:
        """Return the fields that a pull adds to the file, because otherwise only the state would contain them."""
        known = self.entries.get(name, current), self.items[name].fields
        names = filter(current.get, ("slug", "status", "published_at"))
        return {field for field in names if all(current[field] != fields.get(field) for fields in known)}

    def moved_images(self, name: str, post: Post) -> set[str]:
        """Return the names of images whose base URL in a file does not occur in its post."""
        if "images" not in post or name not in self.items:
            return set()
        own, images = self.working.image_names(self.items[name].images), images_in(self.items[name].fields)
        return {image for start, image in images if start not in ("", *post["images"]) and image not in own}

    # What to do

    def decide(self, name: str, current: Post | None) -> tuple[Action, str]:
        """Return the action for a file and its current post, and the reason for a conflict. Raises Conflict."""
        entry, exists = self.entries.get(name), self.working.exists(name)
        if not exists and name in self.working.sha256:
            raise Conflict(CHANGING)
        if not exists and name in self.working.set_aside:
            raise Conflict("rclone set both versions aside: give one of them the file's old name")
        if why := self.unclear.get(name):
            raise Conflict(why)
        if current and (holder := self.holders.get(identity(current), name)) != name:
            raise Conflict(f"{holder} already has the slug {current['slug']}")
        if current and entry and identity(current) != identity(entry):
            raise Conflict(f"its post is gone, and another post has the slug {current['slug']}")
        missing = ABSENT if entry else SAME
        local = (SAME if self.is_same(name, entry) else CHANGED) if exists else missing
        remote = CHANGED if current else missing
        if current and entry and current["fingerprint"] == entry["fingerprint"]:
            remote = SAME
        elif entry and not self.ancestry.is_successor(entry, current, ask=local is SAME):
            remote = REWOUND
        alike = exists and (local is SAME if current is entry else self.is_same(name, current))
        lacks = bool(alike and current and (self.lacking(name, current) or self.moved_images(name, current)))
        if entry and lacks:
            self.working.record_bytes(name)
        action = decide(local, remote, alike=alike, lacks=lacks)
        return action, reason(local, remote, entry, current) if action is Action.CONFLICT else ""

    def leave(self, name: str, current: Post | None, action: Action, why: str) -> Result:
        """Return the result for a file that this command leaves alone. Record a match. Raises Conflict."""
        entry = self.entries.get(name)
        if action is Action.CONFLICT:
            raise Conflict(why)
        if action is Action.FORGET:
            self.working.state.put(name, None)
        elif current and current is not entry:
            if action is Action.RECORD:
                self.working.record(name, current)
            elif entry and entry["fingerprint"] == current["fingerprint"]:  # Only its times changed.
                self.working.record_post(name, current, entry)
        outcome, hint = HINTS.get(action, ("unchanged", ""))
        return Result(outcome, name, hint)


def differences(comparison: Comparison, name: str) -> Iterator[str]:
    """Yield how file and post differ from their last common version, else each other. Raises RemoteError, NotSynced."""
    remote, entry, listed = comparison.remote, comparison.entries.get(name), comparison.post_of.get(name)
    there, base, here = remote.post(listed["id"]) if listed else None, None, None
    if entry and listed:
        base = comparison.ancestry.recorded_version(entry, remote.revisions(entry["id"]) or [])
    if name in comparison.items and (post := there or base):
        here = comparison.pushed(comparison.fields(name), post)
    pairs = [(base, here, "last synced", "here"), (base, there, "last synced", "there")]
    for old, new, old_label, new_label in pairs if base else [(there, here, "there", "here")]:
        before, after = (render(post).decode().split("\n") if post else [] for post in (old, new))
        if len(before) + len(after) > MAX_DIFF_LINES:
            yield f"{name}, {new_label}: too long to compare"
        else:
            labels = f"{name}, {old_label}", f"{name}, {new_label}"
            yield from unified_diff(before, after, *labels, lineterm="", n=2)
