"""Match files, recorded entries and posts, and decide the slug of each file."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from blogapi.wings.sync.client import Post
from blogapi.wings.sync.folder import WorkingFolder, slug_in
from blogapi.wings.sync.state import Entry, identity
from blogapi.wings.transfer.items import Failure, Item, Note
from blogapi.wings.transfer.names import SpoolEntry, possible_slugs, with_distinct_slugs

MOVED = "{} is gone, and {} has its slug: if both are the same file, add `slug: {}` to it, else another"

Posts = dict[tuple[str, str], Post]  # the posts of a service as they were listed, by identity


def is_as_recorded(posts: Posts, entry: Entry) -> bool:
    """Return whether a post has not changed since its entry was written; False if it was in the same second."""
    post = posts.get(identity(entry))
    return bool(post and post["updated_at"] == entry["updated_at"] < entry["seen"])


def renamed(working: WorkingFolder) -> dict[str, str]:
    """Move the entries of renamed files; return the old names by the new ones.

    An entry moves to the file with exactly its bytes, if its own file is gone, or has moved, too; several move if as
    many files have the same bytes. That of a file that is gone also moves to a new one that names its post or slug.
    """
    entries, items, moved = working.entries, working.items, _moved_by_bytes(working)
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
        while name not in names and new_name in moved:  # Another file took its name, so only the entry is left.
            new_name = moved[new_name]
        entries[new_name] = entry
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
    """Return the id and the time in the front matter of a file; if one is missing, they match no post."""
    return str(item.file.number), item.file.created_at or ""


def drop_duplicates(entries: dict[str, Entry], sha256: Mapping[str, str]) -> None:
    """Keep one entry per post: after git merges the states of two clones, a post may have two names."""
    trust = {name: (sha256.get(name) == entry["sha256"], name in sha256) for name, entry in entries.items()}
    kept = {identity(entries[name]): name for name in sorted(trust, key=trust.__getitem__)}
    for name in trust.keys() - kept.values():
        del entries[name]


class Assignment:
    """Decides the post and the slug of each file. Recorded decisions stay, even if other files come or go.

    A new file gets the post that it names by id and time; else the most specific of its possible slugs that has a
    post without a file, so that a folder without its state creates no post twice; else a free slug.
    """

    def __init__(self, working: WorkingFolder, posts: Posts):
        self.entries, self.items, self.exists = working.entries, working.items, working.exists
        self.holders = {identity(entry): name for name, entry in self.entries.items()}  # names by posts
        self.post_of = {name: posts.get(identity(entry)) for name, entry in self.entries.items()}
        self.unclear: dict[str, str] = {}  # why it is unclear whether a new file is one that is gone, for both names
        self.failures: list[Failure] = []  # of new files for which no slug is left
        self.names: dict[str, str] = {}  # files by the slugs that they keep or get
        self.taken = {post["slug"] for post in posts.values()} - self._keep_slugs()
        free = [post for key, post in posts.items() if not self.exists(self.holders.get(key, ""))]
        self.free = {slug: post for post in free for slug in post.get("former_slugs", ())}
        self.free |= {post["slug"]: post for post in free}
        self._add_new(posts)
        for name, item in self.items.items():
            if former := item.fields.get("former_slugs"):
                item.fields["former_slugs"] = [slug for slug in former if self.names.get(slug, name) == name]
        self._name_files(posts.values())

    def _keep_slugs(self) -> set[str]:
        """Give each recorded file the slug of its post, or the one in its front matter since; return those given up."""
        given_up = set()
        for name, entry in self.entries.items():
            if item := self.items.get(name):
                item.fields["slug"] = changed_slug(item, entry) or entry["slug"]
                given_up |= {entry["slug"]} - {item.fields["slug"]}
                self.names.setdefault(item.fields["slug"], name)
            elif self.exists(name):
                self.names[entry["slug"]] = name
        return given_up - self.names.keys()

    def _add_new(self, posts: Posts) -> None:
        new = {name: SpoolEntry.of(item) for name, item in self.items.items() if name not in self.entries}
        keys = {name: _identity_in(self.items[name]) for name in new}
        count_of = Counter(keys.values())
        unique = {name: key for name, key in keys.items() if count_of[key] == 1 and key not in self.holders}
        named = {name: posts[key] for name, key in unique.items() if key in posts}
        distinct = dict(zip(new, with_distinct_slugs([*new.values()]), strict=True))
        claimed: set[str] = set()  # slugs of posts that new files were matched with
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
                reason = f"{holder} has the slug {taken}, too: one of them needs a `slug` of its own"
                self.failures.append(Failure(name, item.file.line_of("slug"), reason))
                del self.items[name]
                continue
            claimed |= {slug} if post else set()
            self._assign(name, slug, post)

    def _chosen(self, entry: SpoolEntry, distinct: str, possible: list[str], claimed: set[str]) -> str:
        """Return the slug of a new file; "" if none is left, or if the post of this one may have gone to another."""
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
        """Choose a file name for each post that has no file."""
        with_file = {post["id"] for post in self.post_of.values() if post}
        for post in posts:
            if post["id"] not in with_file:
                name = f"{post['slug']}.md"
                while name in self.post_of:
                    name = f"{name.removesuffix('.md')}-{post['id']}.md"
                self.post_of[name] = post


def changed_slug(item: Item, entry: Entry) -> str:
    """Return the slug in a file that is for its post; "" without one, and for one that was taken when it was sent."""
    slug = slug_in(item)
    return slug if slug != entry.get("file_slug", "") else ""
