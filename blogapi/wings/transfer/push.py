"""The push: change the posts of a service to match the files in a folder."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any

from blogapi.wings.images.formats import MAX_BYTES
from blogapi.wings.images.rebase import each_text
from blogapi.wings.markdown.front_matter import shown
from blogapi.wings.transfer.client import Left, RemoteError
from blogapi.wings.transfer.decide import Action
from blogapi.wings.transfer.folder import with_addresses
from blogapi.wings.transfer.images import open_below
from blogapi.wings.transfer.items import Item
from blogapi.wings.transfer.notes import Note
from blogapi.wings.transfer.state import Entry, entry_of
from blogapi.wings.transfer.working import Result, WorkingFolder

MAX_NAMED = 5  # images
MAX_SLUG = 70  # characters that are kept of a slug in a free one
TRIES = 3  # attempts to write a post that other clients change at the same moment


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
    delete: bool = False  # moves the posts of files that are gone to the trash
    delete_all: bool = False  # even if most files are gone
    overwrite: bool = False  # sends files whose posts have changed, too
    recreate: bool = False  # creates posts again that are gone
    uploaded: dict[str, str] | None = field(default=None, init=False)  # addresses of images by id

    def prepare(self) -> int:
        """Find the files to send, and announce how long that will take; return the number of results."""
        working = self.working
        gone = [name for name in working.entries if not working.folder.exists(name) and name not in working.items]
        if self.delete and not self.delete_all:
            working.refuse_many(gone, working.items, "files")
        self.names = [name for name in (*working.items, *gone) if working.is_wanted(name)]
        is_same = {name: working.is_same(name, working.entries.get(name)) for name in self.names}
        requests = {name for name in self.names if name in working.items and not is_same[name]}
        self.working.client.announce(len(requests.union(*(working.items[name].images for name in requests))))
        is_asked = requests or gone or not all(map(working.post_of.get, working.entries))
        if is_asked and working.scope in (() if working.dry_run else ("read-only",)) + ("published-only",):
            raise RemoteError(f"this key is {working.scope}: a push needs one that may write")
        # By name, the files that want a slug which the post of another file has, and will give up
        self.waiting = {name: other for name in requests if (other := self._holder(name)) in requests}
        self.same = {name for name in self.names if is_same[name] and not self.overwrite}
        return len(self.names)

    def _holder(self, name: str) -> str:
        """Return the file whose post has the slug that the post of another file is to get."""
        slug, post = self.working.fields(name).get("slug"), self.working.post_of.get(name)
        holder = self.working.by_slug.get(slug or "")
        return self.working.names[holder["id"]] if post and holder and holder["id"] != post["id"] else ""

    def results(self) -> Iterator[Result]:
        """Send what has changed in the folder; yield what was done with each file."""
        wanted, last = [], {}
        for name in self.names:
            if name in self.same and (result := self._known(name)):
                yield result
            else:
                wanted.append(name)
        for name, _, there in self.working.looked(wanted):
            if name in self.waiting and there:
                last[name] = there
            else:
                yield self.working.attempt(self._push, name, there)
        yield from self._in_order(last)

    def _in_order(self, waiting: dict[str, Entry]) -> Iterator[Result]:
        """Send files that want the slugs of other posts, each after the file whose post gives its slug up."""
        left = dict(waiting)
        while left:
            names = [left.popitem()[0]]
            while (other := self.waiting[names[-1]]) in left:
                names.append(other)
                del left[other]
            first, there = names[0], waiting[names[0]]
            is_cycle = self.waiting[names[-1]] == first
            freed = self._free_slug({name: waiting[name] for name in names}) if is_cycle else None
            yield from (self._take_slug(name, waiting[name]) for name in reversed(names[1:]))
            done = self._take_slug(first, freed or there)
            if freed and done[0] == "updated":
                self._forget_slug(first, freed["slug"])
            elif freed:
                self._move(first, there["slug"])
            yield done

    def _take_slug(self, name: str, there: Entry) -> Result:
        """Send a file whose slug the post of another file has given up, if that does not keep it as a former one."""
        self._forget_slug(self.waiting[name], self.working.fields(name)["slug"])
        return self.working.attempt(self._push, name, there)

    def _known(self, name: str) -> Result | None:
        """Return the result for a file that has not changed, unless its post must be looked at."""
        entry, listed = self.working.entries[name], self.working.post_of[name]
        # In the second of the entry, the post may have changed, too: that is for a pull to see.
        return ("unchanged", name, "") if listed and listed["updated_at"] == entry["updated_at"] else None

    def _push(self, name: str, there: Entry | None) -> Result:
        for _ in range(TRIES):
            action, why = self.working.decide(name, there, verify=self.overwrite)
            is_forced = action in (Action.CONFLICT, Action.UNLINK) and (self.overwrite if there else self.recreate)
            if action is Action.TRASH and self.delete and there:
                done = self._trash(name, there)
            elif (action is Action.SEND or is_forced) and name in self.working.items:
                done = self._send(name, there)
            else:
                return self.working.left(name, there, action, why)
            if done:
                return done
            there = self._get(there["id"] if there else f"by-slug/{self.working.items[name].fields['slug']}")
        raise Left("conflict", "its post keeps changing: try again later")

    def _get(self, where: str) -> Entry | None:
        found = self.working.remote.post(where)
        return entry_of(*found) if found else None

    def _send(self, name: str, there: Entry | None) -> Result | None:
        """Send a file, after its images; return None if its post has changed. Raises Left, IMAGE_ERRORS."""
        item = self.working.items[name]
        done = "updated" if there else "created", name, what_differs(item)
        if self.working.dry_run or (there and not there["etag"]):
            return done if self.working.dry_run else None
        files = self.working.image_names(item.images)
        addresses = {image.encode(): self._upload(image, file).encode() for image, file in files.items()}
        fields = each_text(self.working.fields(name), with_addresses(addresses))
        if there:
            found = self.working.remote.put(there["id"], fields, If_Match=there["etag"])
        else:
            fields.pop("slug", None)
            found = self.working.remote.put(f"by-slug/{item.fields['slug']}", fields, If_None_Match="*")
        if found:
            self.working.record(name, entry_of(*found))
        return done if found else None

    def _upload(self, name: str, file: str) -> str:
        """Upload the image in a file, unless the service has it under this name; return its address."""
        self.uploaded = self.working.remote.images() if self.uploaded is None else self.uploaded
        image_id, _, extension = name.partition(".")
        if image_id not in self.uploaded:
            with open_below(file, self.working.images.roots) as opened:
                data = opened.read(MAX_BYTES + 1)
            kind = f"image/{extension.replace('jpg', 'jpeg')}"
            self.uploaded[image_id] = self.working.remote.upload(shown(os.path.basename(file)), kind, data)
        return self.uploaded[image_id]

    def _free_slug(self, cycle: dict[str, Entry]) -> Entry | None:
        """If all files of a cycle will be sent, give its first post another slug, and return that post."""
        with suppress(Left):
            if all(self.working.decide(*each, verify=False)[0] is Action.SEND for each in cycle.items()):
                name, there = next(iter(cycle.items()))
                return self._move(name, f"{there['slug'][:MAX_SLUG].rstrip('-')}-{token_hex(4)}")
        return None

    def _move(self, name: str, slug: str) -> Entry | None:
        """Change only the slug of a post, and forget the old one; return the post, or None if that failed."""
        old = self.working.entries[name]["slug"]
        if moved := self._change(name, slug=slug):
            return self._forget_slug(name, old) or moved
        return None

    def _forget_slug(self, name: str, slug: str) -> Entry | None:
        """Remove a slug from the former ones of a post, so that another can take it; return the post if it changed."""
        former = self.working.entries.get(name, {}).get("former_slugs", [])
        left = [each for each in former if each != slug]
        return self._change(name, former_slugs=left or None) if left != former else None

    def _change(self, name: str, **fields: Any) -> Entry | None:
        """Change fields of a post that a file lacks, or will replace; return it, or None if that failed."""
        entry = self.working.entries[name]
        with suppress(Left):
            there = entry if entry["etag"] or self.working.dry_run else self._get(entry["id"])
            if self.working.dry_run or not there or there["said"] != entry["said"]:
                return None
            if found := self.working.remote.patch(there["id"], fields, If_Match=there["etag"]):
                self.working.record(name, changed := entry_of(*found), entry["sha256"])
                return changed
        return None

    def _trash(self, name: str, there: Entry) -> Result | None:
        """Move the post of a file that is gone to the trash; return None if the post has changed."""
        if not self.working.dry_run:
            if not self.working.remote.delete(there["id"], there["etag"]):
                return None
            self.working.state.put(name, None)
        return "deleted", name, ""
