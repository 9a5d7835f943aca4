"""The push: change the posts of a service to match the files in a folder."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from secrets import token_hex
from typing import Any

from blogapi.documents import dump
from blogapi.wings.images.formats import MAX_IMAGE_BYTES
from blogapi.wings.images.rebase import each_text
from blogapi.wings.markdown.front_matter import shown
from blogapi.wings.sync.client import Conflict, NotSynced, RemoteError
from blogapi.wings.sync.comparison import Comparison
from blogapi.wings.sync.decisions import Action
from blogapi.wings.sync.state import Entry, entry_of, identity
from blogapi.wings.sync.working import Result
from blogapi.wings.transfer.folder import open_below
from blogapi.wings.transfer.images import with_addresses
from blogapi.wings.transfer.items import Item, Note
from blogapi.wings.transfer.report import examples

KEPT_SLUG_LENGTH = 70  # characters that are kept of a slug in a free one
WRITE_ATTEMPTS = 3  # attempts to write a post that other clients change at the same moment


@dataclass
class Push:
    """A push of a folder."""

    comparison: Comparison
    delete: bool = False  # moves the posts of files that are gone to the trash
    delete_all: bool = False  # even if most files are gone
    overwrite: bool = False  # sends files whose posts have changed, too
    recreate: bool = False  # creates posts again that are gone

    def __post_init__(self) -> None:
        """Find the files to send, and announce how long that will take. Raises RemoteError if it is not allowed."""
        working = self.working = self.comparison.working
        self.by_slug = {post["slug"]: post for post in working.posts.by_id.values()}
        gone = [name for name in working.entries if not working.folder.exists(name) and name not in working.items]
        if self.delete and not self.delete_all:
            working.refuse_many(gone, working.items, "files")
        self.queue = working.wanted([*working.items, *gone])
        same = {name for name in self.queue if self.comparison.is_same(name, working.entries.get(name))}
        requests = {name for name in self.queue if name in working.items} - same
        working.client.announce(len(requests.union(*(working.items[name].images for name in requests))))
        is_asked = requests or gone or not all(map(working.post_of.get, working.entries))
        refused = {"published-only"} if working.dry_run else {"published-only", "read-only"}
        if is_asked and working.remote.scope in refused:
            raise RemoteError(f"this key is {working.remote.scope}: a push needs one that may write")
        # The files that want the slug of another file's post, each with that file, which gives it up
        self.waiting = {name: other for name in requests if (other := self._holder(name)) in requests}
        # A post may have changed again within the same second; a pull finds that.
        listed = {name: working.post_of[name] or {} for name in same if not self.overwrite}
        self.unchanged = {
            name for name, post in listed.items() if post.get("updated_at") == working.entries[name]["updated_at"]
        }

    def _holder(self, name: str) -> str:
        """Return the file whose post has the slug that another file wants, if that file gives the slug up."""
        working, fields, is_new = self.working, self.comparison.fields, name not in self.working.entries
        slug = working.items[name].fields["slug"] if is_new else fields(name).get("slug", "")
        holder = self.by_slug.get(slug) if working.post_of.get(name) else None
        other = working.holders.get(identity(holder), name) if holder else name
        gives_up = other in working.items and fields(other).get("slug", slug) != slug
        return other if other != name and gives_up else ""

    def results(self) -> Iterator[Result]:
        """Send what has changed in the folder; yield what was done with each file."""
        yield from (Result("unchanged", name) for name in self.queue if name in self.unchanged)
        last: dict[str, Entry | None] = {}
        for name, _, current in self.working.with_posts(name for name in self.queue if name not in self.unchanged):
            is_new = name in self.waiting and name not in self.working.entries
            if name in self.waiting and (current or is_new) and not self.working.dry_run:
                last[name] = None if is_new else current
            else:
                yield self.working.attempt(self._push, name, None if is_new else current)
        yield from self._in_turn(last)

    def _push(self, name: str, current: Entry | None) -> Result:
        for _ in range(WRITE_ATTEMPTS):
            action, why = self.comparison.decide(name, current)
            is_forced = action in (Action.CONFLICT, Action.UNLINK) and (self.overwrite if current else self.recreate)
            if action is Action.TRASH and self.delete and current:
                done = self._trash(name, current)
            elif (action is Action.SEND or is_forced) and name in self.working.items:
                done = self._send(name, current)
            else:
                return self.comparison.leave(name, current, action, why)
            if done:
                return done
            current = self._get(current["id"] if current else f"by-slug/{self.working.items[name].fields['slug']}")
        raise Conflict("its post keeps changing: try again later")

    def _get(self, where: str) -> Entry | None:
        found = self.working.remote.post(where)
        return entry_of(*found) if found else None

    def _send(self, name: str, current: Entry | None) -> Result | None:
        """Send a file, after its images; return None if its post has changed. Raises NotSynced, IMAGE_ERRORS."""
        item = self.working.items[name]
        if current and not self.overwrite and self._has_lost_images(name, current):
            raise NotSynced(f"{what_differs(item)}: push --overwrite sends it without them")
        done = Result("updated" if current else "created", name, what_differs(item))
        if self.working.dry_run:
            return done
        if current and not current["etag"]:  # It is from a list.
            return None
        self.working.state.begin()
        files = self.working.image_names(item.images)
        addresses = {image.encode(): self._upload(image, file).encode() for image, file in files.items()}
        fields = each_text(self.comparison.fields(name), with_addresses(addresses))
        if current:
            found = self.working.remote.write("PUT", current["id"], fields, If_Match=current["etag"])
        else:
            fields.pop("slug", None)
            found = self.working.remote.write("PUT", f"by-slug/{item.fields['slug']}", fields, If_None_Match="*")
        if found:
            self.working.record(name, entry_of(*found))
        return done if found else None

    def _has_lost_images(self, name: str, current: Entry) -> bool:
        """Return whether a file is as it was, and its post has images that are not found any more."""
        missing, known = self.working.items[name].missing, self.working.entries.get(name)
        if not (missing and known and known["sha256"] == self.working.sha256[name]):
            return False
        found = self.working.remote.post(current["id"])
        return found is not None and not all(address in dump(found[0]) for address in missing)

    @cached_property
    def uploaded(self) -> dict[str, str]:
        """The addresses of the images on the service, by id; fetched on first use."""
        return self.working.remote.images()

    def _upload(self, name: str, file: str) -> str:
        """Upload the image in a file, unless the service has it under this name; return its address."""
        image_id, _, extension = name.partition(".")
        if image_id not in self.uploaded:
            with open_below(file, self.working.images.roots) as opened:
                data = opened.read(MAX_IMAGE_BYTES + 1)
            kind = f"image/{extension.replace('jpg', 'jpeg')}"
            self.uploaded[image_id] = self.working.remote.upload(shown(os.path.basename(file)), kind, data)
        return self.uploaded[image_id]

    def _trash(self, name: str, current: Entry) -> Result | None:
        """Move the post of a file that is gone to the trash; return None if the post has changed."""
        if not self.working.dry_run:
            self.working.state.begin()
            if not self.working.remote.delete(current["id"], current["etag"]):
                return None
        self.working.forget(name)
        return Result("deleted", name)

    # Slugs that files take from each other

    def _in_turn(self, left: dict[str, Entry | None]) -> Iterator[Result]:
        """Send files that want the slugs of other posts, each after the file whose post gives its slug up."""
        while left:
            ready = (name for name in left if self.waiting[name] not in left)
            name = next(ready, None) or self._opened_cycle(left)
            current = left.pop(name)
            # The post that had the slug may keep it as a former one.
            self._forget_slug(self.waiting[name], self.working.items[name].fields["slug"])
            done = self.working.attempt(self._push, name, current)
            if current and (old := self.working.posts.by_id[current["id"]]["slug"]) != current["slug"]:
                if done.outcome == "updated":
                    self._forget_slug(name, current["slug"])
                else:
                    self._move(name, old)
            yield done

    def _opened_cycle(self, left: dict[str, Entry | None]) -> str:
        """Give a post in a cycle another slug if all its files will be sent; return the file that wants its slug."""
        cycle = [next(iter(left))]
        while (other := self.waiting[cycle[-1]]) not in cycle:
            cycle.append(other)
        with suppress(NotSynced):
            if all(self.comparison.decide(name, left[name])[0] is Action.SEND for name in cycle):
                self._move(
                    other, f"{self.working.entries[other]['slug'][:KEPT_SLUG_LENGTH].rstrip('-')}-{token_hex(4)}"
                )
                left[other] = self.working.entries[other]
        return cycle[-1]

    def _move(self, name: str, slug: str) -> None:
        """Change only the slug of a post, and forget the old one."""
        old = self.working.entries[name]["slug"]
        self._change(name, slug=slug)
        self._forget_slug(name, old)

    def _forget_slug(self, name: str, slug: str) -> None:
        """Remove a slug from the former ones of a post, so that another can take it."""
        former = self.working.entries.get(name, {}).get("former_slugs", [])
        if slug in former:
            self._change(name, former_slugs=[each for each in former if each != slug] or None)

    def _change(self, name: str, **fields: Any) -> None:
        """Change fields of a post that a file lacks, or will replace, unless somebody else has changed it."""
        entry = self.working.entries[name]
        self.working.state.begin()
        with suppress(NotSynced):
            current = entry if entry["etag"] else self._get(entry["id"])
            if current and current["fingerprint"] == entry["fingerprint"]:
                found = self.working.remote.write("PATCH", current["id"], fields, If_Match=current["etag"])
                if found:
                    self.working.record(name, entry_of(*found), entry["sha256"])


def what_differs(item: Item) -> str:
    """Return how the post of a pushed file will differ from what the file says."""
    why = [f"its slug is {item.fields['slug']}"] if Note.OTHER_SLUGS in item.notes else []
    hidden = item.notes.get(Note.HIDDEN)
    why += [f"a draft, because of {hidden[1]}"] if isinstance(hidden, tuple) else []
    why += [f"images not found: {examples(item.missing)}"] if item.missing else []
    return "; ".join(why)
