"""Match files, recorded entries and posts, and decide the slug of each file."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property, partial

from blogapi.wings.sync.client import KEPT_REVISIONS, Post, Remote, Revision
from blogapi.wings.sync.folder import WorkingFolder, slug_in
from blogapi.wings.sync.state import Entry, identity
from blogapi.wings.transfer.items import Failure, Item, Note
from blogapi.wings.transfer.names import SpoolEntry, possible_slugs, with_distinct_slugs

MOVED = "{} is gone, and {} has its slug: if they are the same file, add `slug: {}`; if not, another slug"

Posts = dict[tuple[str, str], Post]  # identity -> post, as the service listed it


def is_as_recorded(posts: Posts, entry: Entry) -> bool:
    """Return whether a post is certainly unchanged since it was recorded, even within the same second."""
    post = posts.get(identity(entry))
    return bool(post and post["updated_at"] == entry["updated_at"] < entry["seen"])


def place_entries(working: WorkingFolder) -> dict[str, str]:
    """Drop untrustworthy entries, and move those of renamed files. Return a dict that maps new names to old ones.

    If an entry's file is gone or has moved, the entry moves to the file with the recorded hash. If several entries have
    the same hash, they move only to an equal number of files. If a file is gone, its entry can also move to a new file
    with the entry's id and time, or its slug, in front matter.
    """
    entries, items = working.entries, working.items
    _drop_duplicates(entries, working.sha256)
    moved = _moved_by_bytes(working)
    gone = {name: entries[name] for name in sorted(entries.keys() - {*moved.values()}) if not working.exists(name)}
    keys = {key: name for name, entry in gone.items() for key in (entry["slug"], identity(entry))}
    for name in sorted(items.keys() - entries.keys() - moved.keys()) if gone else ():
        item = items[name]
        slug = item.fields["slug"] if "slug" in item.file.sources else ""
        if old := next((keys[key] for key in (_identity_in(item), slug) if keys.get(key) in gone), None):
            moved[name] = old
            del gone[old]
    names, before = {old: name for name, old in moved.items()}, {**entries}
    entries.clear()
    for name, entry in before.items():
        new_name = names.get(name, name)
        while name not in names and new_name in moved:  # Another file took this name, so use that file's old name.
            new_name = moved[new_name]
        entries[new_name] = entry
    working.state.reconcile(working.sha256)
    return moved


def _moved_by_bytes(working: WorkingFolder) -> dict[str, str]:
    left, arrived = defaultdict(list), defaultdict(list)  # names by digest
    for name in sorted(working.entries.keys() | working.items.keys()):
        recorded = working.entries.get(name, {}).get("sha256", "")
        digest = working.sha256[name] if name in working.items else ""
        if recorded != digest:
            left[recorded].append(name)
            arrived[digest].append(name)
    moved: dict[str, str] = {}
    for digest, names in left.items():
        if digest and len(arrived[digest]) == len(names):
            moved |= zip(arrived[digest], names, strict=True)
    while held := [name for name, old in moved.items() if working.exists(old) and old not in moved]:
        for name in held:
            del moved[name]
    return moved


def _identity_in(item: Item) -> tuple[str, str]:
    """Return the id and the time in a file's front matter. If one of them is missing, the pair matches no post."""
    return str(item.file.number), item.file.created_at or ""


def _drop_duplicates(entries: dict[str, Entry], sha256: Mapping[str, str]) -> None:
    """Keep one entry per post. After git has merged the states of two clones, a post may have two."""
    trust = {name: (sha256.get(name) == entry["sha256"], name in sha256) for name, entry in entries.items()}
    kept = {identity(entries[name]): name for name in sorted(trust, key=trust.__getitem__)}
    for name in trust.keys() - kept.values():
        del entries[name]


class Assignment:
    """Decides the post and the slug of each file. Recorded decisions stand, even if other files come or go.

    A new file gets the post with the id and time in its front matter. Otherwise, it gets the most specific of its
    possible slugs under which there is a post without a file. This keeps posts from being created twice if the state is
    missing. If there is no such post, the file gets a free slug.
    """

    def __init__(self, working: WorkingFolder, posts: Posts):
        self.entries, self.items, self.exists = working.entries, working.items, working.exists
        self.holders = {identity(entry): name for name, entry in self.entries.items()}  # file names by post
        self.post_of = {name: posts.get(identity(entry)) for name, entry in self.entries.items()}
        self.unclear: dict[str, str] = {}  # messages for missing files, and for new files that may be the missing ones
        self.failures: list[Failure] = []  # for new files that get no slug
        self.names: dict[str, str] = {}  # file names by the slugs that the files keep or get
        self.taken = {post["slug"] for post in posts.values()} - self._keep_slugs(working.sources.publish)
        free = [post for key, post in posts.items() if not self.exists(self.holders.get(key, ""))]
        self.free = {slug: post for post in free for slug in post.get("former_slugs", ())}
        self.free |= {post["slug"]: post for post in free}
        self._add_new(posts)
        for name, item in self.items.items():
            if former := item.fields.get("former_slugs"):
                item.fields["former_slugs"] = [slug for slug in former if self.names.get(slug, name) == name]
        self._name_files(posts.values())

    def _keep_slugs(self, publish: bool) -> set[str]:
        """Give recorded files the new slug in front matter, or the post's slug. Return the slugs that become free."""
        given_up = set()
        for name, entry in self.entries.items():
            if item := self.items.get(name):
                slug = slug_in(item)  # If it is `file_slug`, it has not been edited.
                item.fields["slug"] = entry["slug"] if slug in ("", entry.get("file_slug")) else slug
                if item.fields.get("former_slugs") == entry.get("file_former_slugs"):  # The post keeps its own.
                    item.fields.pop("former_slugs", None)
                keeps_draft = (entry["status"], entry.get("file_status"), publish) == ("draft", "", False)
                if keeps_draft and "status" not in item.file.sources and item.fields.pop("status", "") == "scheduled":
                    del item.fields["published_at"]  # A draft has no future date.
                given_up |= {entry["slug"]} - {item.fields["slug"]}
                self.names.setdefault(item.fields["slug"], name)
            elif self.exists(name):
                self.names[entry["slug"]] = name
        return given_up - self.names.keys()

    def _add_new(self, posts: Posts) -> None:
        new = {name: SpoolEntry.of(item) for name, item in self.items.items() if name not in self.entries}
        keys = {name: _identity_in(self.items[name]) for name in new}
        count_of, unheld = Counter(keys.values()), posts.keys() - self.holders.keys()
        named = {name: posts[key] for name, key in keys.items() if count_of[key] == 1 and key in unheld}
        distinct = dict(zip(new, with_distinct_slugs([*new.values()]), strict=True))
        claimed: set[str] = set()  # slugs of the posts that were assigned to new files
        order = {
            name: (name not in named, not entry.is_given, entry.slug not in self.taken) for name, entry in new.items()
        }
        for name in sorted(new, key=order.__getitem__):
            item, possible = self.items[name], possible_slugs(new[name])
            if post := named.get(name):
                slug = possible[0] if new[name].is_given else post["slug"]
            elif slug := self._chosen(new[name], distinct[name].slug, possible, claimed):
                post = self.free.get(slug)
                item.notes |= {Note.OTHER_SLUGS: None} if slug != possible[0] else {}
            else:
                taken = next(filter(self.names.__contains__, possible), possible[0])
                holder = self.names.get(taken, "another post")
                reason = f"{holder} also has the slug {taken}: give one of them another `slug`"
                self.failures.append(Failure(name, item.file.line_of("slug"), reason))
                del self.items[name]
                continue
            claimed |= {slug} if post else set()
            self._assign(name, slug, post)

    def _chosen(self, entry: SpoolEntry, distinct: str, possible: list[str], claimed: set[str]) -> str:
        """Return the slug for a new file, or "" if none is left or another new file may have taken its post."""
        left = [slug for slug in (distinct, *possible) if slug not in self.names]
        if with_post := [slug for slug in possible if slug in left and slug in self.free]:
            return with_post[0 if entry.is_given else -1]
        is_clear = claimed.isdisjoint(possible)
        return next((slug for slug in left if slug not in self.taken), "") if is_clear else ""

    def _assign(self, name: str, slug: str, post: Post | None) -> None:
        self.names[slug], self.items[name].fields["slug"], self.post_of[name] = name, slug, post
        if post:
            self.names.setdefault(post["slug"], name)
            for own in (post["slug"], *post.get("former_slugs", ())):
                self.free.pop(own, None)
            if old := self.holders.get(identity(post)):
                self.unclear[old] = MOVED.format("this file", name, post["slug"])
                self.unclear[name] = MOVED.format(old, "this file", post["slug"])

    def _name_files(self, posts: Iterable[Post]) -> None:
        """Choose a file name for each post without a file."""
        with_file = {post["id"] for post in self.post_of.values() if post}
        for post in posts:
            if post["id"] not in with_file:
                name = f"{post['slug']}.md"
                while name in self.post_of:
                    name = f"{name.removesuffix('.md')}-{post['id']}.md"
                self.post_of[name] = post


class Ancestry:
    """Decides whether posts descend from their recorded versions.

    If a recorded version is still current, no older backup was restored after that version was seen. The database then
    still contains every version that was written earlier, and seen at the same time or later.
    """

    def __init__(self, entries: Collection[Entry], posts: Posts, remote: Remote, now: str):
        self.entries, self.posts, self.remote = entries, posts, remote
        self._proofs: dict[str, str] = {}  # `seen` -> the latest `updated_at` of current entries
        for entry in filter(partial(is_as_recorded, posts), entries):
            self._add_proof(entry)
            entry["seen"] = now

    def _add_proof(self, entry: Entry) -> None:
        self._proofs[entry["seen"]] = max(self._proofs.get(entry["seen"], ""), entry["updated_at"])

    def _is_proven(self, entry: Entry) -> bool:
        return any(seen <= entry["seen"] and time > entry["updated_at"] for seen, time in self._proofs.items())

    def is_successor(self, entry: Entry, current: Post | None, ask: bool) -> bool:
        """Return whether a post descends from its record or was deleted after it. `ask` the service if necessary.

        A post does not descend from its record if a single other version was current from before the recorded version
        was written until after it was seen.
        """
        if current and current["updated_at"] < entry["updated_at"]:
            return False
        if self._is_proven(entry) or not ask:
            return True
        if not current:
            trashed = self.remote.trashed(entry["id"])
            return trashed is not None and identity(trashed) == identity(entry)
        revisions = self.remote.revisions(entry["id"])
        if revisions is None:
            return not self._may_be_restored
        if any(begun == entry["updated_at"] for _, begun, _ in revisions):
            return self.recorded_version(entry, revisions) is not None
        if len(revisions) >= KEPT_REVISIONS and all(begun > entry["updated_at"] for _, begun, _ in revisions):
            return False  # The version may have been pruned from the history, or it is lost.
        return not any(begun < entry["updated_at"] and entry["seen"] < ended for _, begun, ended in revisions)

    @cached_property
    def _may_be_restored(self) -> bool:
        """Whether a restored backup may explain why posts are gone, or have an earlier `updated_at` than recorded."""
        pairs = ((entry, self.posts.get(identity(entry))) for entry in self.entries)
        lost = (entry for entry, post in pairs if not post or post["updated_at"] < entry["updated_at"])
        return not all(map(self._is_proven, lost))

    def recorded_version(self, entry: Entry, revisions: list[Revision]) -> Post | None:
        """Return the recorded version of a post if it is among these revisions."""
        for number, begun, _ in revisions:
            if begun == entry["updated_at"]:
                version = self.remote.post(f"{entry['id']}/revisions/{number}")
                if version and version["fingerprint"] == entry["fingerprint"]:
                    self._add_proof(entry)
                    return version
        return None
