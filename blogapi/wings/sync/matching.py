"""Which file, recorded entry and post belong together."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from blogapi.wings.sync.remote import Post
from blogapi.wings.sync.state import Entry, identity
from blogapi.wings.transfer.items import Item


class PostList:
    """The posts of a service, with the fields that a list of them gives."""

    def __init__(self, posts: Iterable[Post]):
        self.by_id = {post["id"]: post for post in posts}

    def find(self, entry: Entry) -> Post | None:
        """Return the post of an entry; in another database, its id belongs to another post."""
        post = self.by_id.get(entry["id"])
        return post if post and identity(post) == identity(entry) else None

    def is_as_recorded(self, entry: Entry) -> bool:
        """Return whether a post has not changed since its entry was written; False if it was in the same second."""
        post = self.find(entry)
        return bool(post and post["updated_at"] == entry["updated_at"] < entry["seen"])


def duplicates(entries: Mapping[str, Entry], sha256: Mapping[str, str]) -> Collection[str]:
    """Return the names to forget: after git merges the states of two clones, a post can have two names."""
    trust = {name: (sha256.get(name) == each["sha256"], name in sha256) for name, each in entries.items()}
    kept = {identity(entries[name]): name for name in sorted(trust, key=trust.__getitem__)}
    return trust.keys() - kept.values()


def renamed(
    entries: Mapping[str, Entry], items: Mapping[str, Item], sha256: Mapping[str, str], exists: Callable[[str], bool]
) -> dict[str, str]:
    """Return the old names of new files: of the same bytes, or of the post or slug that their front matter names."""
    gone = {name: entry for name, entry in entries.items() if not exists(name)}
    keys = {key: name for name, entry in gone.items() for key in (entry["slug"], identity(entry), entry["sha256"])}
    found: dict[str, str] = {}
    for name in sorted(items.keys() - entries.keys()) if gone else ():
        old = next((keys[key] for key in (sha256[name], *_named(items[name])) if keys.get(key) in gone), None)
        if old:
            found[name] = old
            del gone[old]
    return found


def match(
    entries: Mapping[str, Entry], items: Mapping[str, Item], posts: PostList, exists: Callable[[str], bool]
) -> tuple[dict[str, Post | None], dict[str, str]]:
    """Return the post of each file: that of its entry, the one it names, or the one that has or had its slug.

    A post without a file has the name of the file that it would get. Also return new files with the slugs of posts
    whose files are gone, by the old names.
    """
    all_posts, holders = posts.by_id.values(), {identity(entry): name for name, entry in entries.items()}
    by_slug, by_identity = {post["slug"]: post for post in all_posts}, {identity(post): post for post in all_posts}
    without = [post for post in all_posts if identity(post) not in holders]
    by_former = {slug: post for post in without for slug in post.get("former_slugs", ())}
    new = [name for name in items if name not in entries]
    count_of = Counter(key for name in new for key in _named(items[name]))
    post_of = {name: posts.find(entry) for name, entry in entries.items()}
    heirs: dict[str, str] = {}
    for name in new:
        free = [key for key in _named(items[name]) if key in by_identity and key not in holders]
        own = [by_identity[key] for key in free if count_of[key] == 1]
        slug = items[name].fields["slug"]
        post = own[0] if own else by_slug.get(slug) or by_former.get(slug)
        post_of[name] = post
        if post and not exists(holder := holders.get(identity(post), name)):
            heirs[holder] = name
    _name_files(post_of, all_posts)
    return post_of, heirs


def _named(item: Item) -> list[Any]:
    """Return the identity and the slug in the front matter of a file, as far as it has them."""
    file = item.file
    names: list[Any] = [(str(file.number), file.created_at)] if file.number and file.created_at else []
    return [*names, item.fields["slug"]] if "slug" in file.sources else names


def _name_files(post_of: dict[str, Post | None], posts: Iterable[Post]) -> None:
    """Give each post without a file a name for one."""
    with_file = {post["id"] for post in post_of.values() if post}
    for post in posts:
        if post["id"] not in with_file:
            name = f"{post['slug']}.md"
            while name in post_of:
                name = f"{name.removesuffix('.md')}-{post['id']}.md"
            post_of[name] = post
