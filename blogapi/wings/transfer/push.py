"""The push: change the posts of a service to match the files in a folder."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from blogapi.wings.images.formats import MAX_BYTES
from blogapi.wings.images.rebase import each_text
from blogapi.wings.markdown.front_matter import shown
from blogapi.wings.transfer.folder import with_addresses
from blogapi.wings.transfer.images import IMAGE_ERRORS, open_below, reason_of
from blogapi.wings.transfer.items import Item
from blogapi.wings.transfer.notes import Note
from blogapi.wings.transfer.remote import Answer, Left, Post, Remote, RemoteError
from blogapi.wings.transfer.working import Entry, Result, WorkingFolder, entry_of, is_same_post

FEW = 20  # posts that are fetched one by one; for more, all posts are listed
GONE_THERE = "pull --delete removes the file, push --force creates the post again"
GONE_THERE_CHANGED = "it has changed here, and its post is gone: push --force creates it again"
GONE_HERE_CHANGED = "it is gone here, and has changed there: push --delete --force deletes it, pull --theirs writes it"
MAX_NAMED = 5  # images
TRIES = 3  # attempts to write a post that other clients change at the same moment


def look(remote: Remote, wanted: set[str]) -> Iterator[tuple[Post, str]]:
    """Yield the posts with these ids, each with its ETag if that is known."""
    if len(wanted) <= FEW:
        yield from filter(None, map(remote.post, sorted(wanted, key=int)))
    else:
        yield from ((post, "") for post in remote.posts() if post["id"] in wanted)


def attempt(act: Callable[..., Result], name: str, *arguments: Entry | Post | str) -> Result:
    """Return the result for a file: "conflict" or "failed" if it is left as it is."""
    try:
        return act(name, *arguments)
    except Left as left:
        what, why = left.args
        return what, name, why
    except IMAGE_ERRORS as error:
        return "failed", name, reason_of(error)


def what_differs(item: Item) -> str:
    """Return how the post of a file will differ from what the file says."""
    missing, more = item.missing[:MAX_NAMED], len(item.missing) - MAX_NAMED
    why = [f"its slug is {item.fields['slug']}"] if Note.OTHER_SLUGS in item.notes else []
    hidden = item.notes.get(Note.HIDDEN)
    why += [f"a draft, because of {hidden[1]}"] if isinstance(hidden, tuple) else []
    why += [f"images not found: {', '.join(missing)}" + (f" and {more} more" if more > 0 else "")] if missing else []
    return "; ".join(why)


@dataclass
class Push:
    """A push of a folder."""

    working: WorkingFolder
    remote: Remote
    delete: bool  # moves the posts of files that are gone to the trash
    uploaded: dict[str, str] | None = field(default=None, init=False)  # addresses of images by id
    # Posts that may differ from their files, by the names of these; None if there is no post
    there: dict[str, Entry | None] = field(default_factory=dict, init=False)

    def prepare(self) -> int:
        """Read both sides; return the number of results."""
        if (scope := self.remote.scope()) in ("read-only", "published-only"):
            raise RemoteError(f"this key is {scope}: a push needs one that may write")
        self.working.read()
        self.gone = [name for name in self.working.entries if not self.working.exists(name)]
        if self.delete and self.gone and not self.working.items and not self.working.force:
            raise RemoteError("the folder has no posts: --force moves all of them to the trash")
        self._look()
        return len(self.working.items) + len(self.gone)

    def _look(self) -> None:
        """Find the files to send, look at their posts, and announce how long the push will take."""
        wanted: dict[str, str] = {}  # ids of the posts to look at, by the names of files
        requests: set[str] = set()  # the files to send
        for name, item in self.working.items.items():
            entry = self.working.entries.get(name)
            listed = self.working.listed(entry) if entry else self.working.by_slug.get(item.fields["slug"])
            if not entry or self.working.has_changed(name):
                requests |= {name, *item.images}
            elif listed and listed["updated_at"] >= entry["updated_at"]:
                continue
            self.there[name] = entry if self.working.is_as_known(entry, listed) else None
            if listed and not self.there[name]:
                wanted[name] = listed["id"]
        self.remote.announce(len(requests))
        found = {post["id"]: entry_of(post, etag) for post, etag in look(self.remote, {*wanted.values()})}
        self.there |= {name: found.get(post_id) for name, post_id in wanted.items()}

    def results(self) -> Iterator[Result]:
        """Send what has changed in the folder; yield what was done with each file."""
        for name in self.working.items:
            yield attempt(self._push, name) if name in self.there else ("unchanged", name, "")
        yield from (attempt(self._push_gone, name) for name in self.gone)

    def _push(self, name: str) -> Result:
        item, entry, there = self.working.items[name], self.working.entries.get(name), self.there[name]
        for _ in range(TRIES):
            if result := self._settled(name, entry, there):
                return result
            what = "updated" if there else "created"
            if self.working.dry_run:
                return what, name, what_differs(item)
            if not there or there["etag"]:
                answer = self._put(name, there)
                if answer.status not in (404, 412):
                    self.working.record(name, entry_of(*self.remote.post_in(answer)))
                    return what, name, what_differs(item)
            there = self._get(there["id"] if there else f"by-slug/{item.fields['slug']}")
        raise Left("conflict", "its post keeps changing: try again later")

    def _get(self, where: str) -> Entry | None:
        found = self.remote.post(where)
        return entry_of(*found) if found else None

    def _settled(self, name: str, entry: Entry | None, there: Entry | None) -> Result | None:
        """Return the result for a file that need not be sent, or None. Raises Left."""
        if not there:
            if not entry or self.working.force:
                return None
            if self.working.has_changed(name):
                raise Left("conflict", GONE_THERE_CHANGED)
            return "gone there", name, GONE_THERE
        for other, each in self.working.entries.items():
            if other != name and is_same_post(each, there):
                raise Left("conflict", f"{other} has the slug {there['slug']}, too")
        relation = self.working.compare(name, there)
        if relation == "same":
            self.working.record(name, there, at_once=False)
        if relation in ("same", "there"):
            return "unchanged", name, ""
        if relation == "here" or self.working.force:
            return None
        raise Left("conflict", relation)

    def _put(self, name: str, there: Entry | None) -> Answer:
        """Send a post after its images. Raises Left, IMAGE_ERRORS."""
        item, files = self.working.items[name], self.working.image_names(self.working.items[name].images)
        addresses = {image.encode(): self._upload(image, file).encode() for image, file in files.items()}
        fields = each_text(self.working.fields(name), with_addresses(addresses))
        if there:
            return self.remote.send("PUT", f"/v1/posts/{there['id']}", fields, (404, 412), If_Match=there["etag"])
        fields.pop("slug", None)
        return self.remote.send("PUT", f"/v1/posts/by-slug/{item.fields['slug']}", fields, (412,), If_None_Match="*")

    def _upload(self, name: str, file: str) -> str:
        """Upload the image in a file, unless the service has it under this name; return its address."""
        self.uploaded = self.remote.images() if self.uploaded is None else self.uploaded
        image_id, _, extension = name.partition(".")
        if image_id not in self.uploaded:
            with open_below(file, self.working.images.roots) as opened:
                data = opened.read(MAX_BYTES + 1)
            kind = f"image/{extension.replace('jpg', 'jpeg')}"
            self.uploaded[image_id] = self.remote.upload(shown(os.path.basename(file)), kind, data)
        return self.uploaded[image_id]

    def _push_gone(self, name: str) -> Result:
        """Handle a post whose file is gone."""
        entry = self.working.entries[name]
        listed = self.working.listed(entry)
        if listed and not self.delete:
            return "gone here", name, "push --delete moves its post to the trash"
        is_known = self.working.is_as_known(entry, listed) and entry["etag"]
        there = entry if is_known else self._get(entry["id"]) if listed else None
        while there:
            if there["said"] != entry["said"] and not self.working.force:
                raise Left("conflict", GONE_HERE_CHANGED)
            path, etag = f"/v1/posts/{there['id']}", there["etag"]
            if self.working.dry_run or self.remote.send("DELETE", path, None, (404, 412), If_Match=etag).status != 412:
                break
            there = self._get(entry["id"])
        self.working.forget(name)
        return "deleted" if listed else "unchanged", name, ""
