"""Push: change the posts of a service to match the files in a folder."""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from secrets import token_hex
from typing import Any

from blogapi.documents import dump, each_text
from blogapi.markdown.front_matter import shown
from blogapi.wings.images.formats import MAX_IMAGE_BYTES
from blogapi.wings.sync.client import Conflict, NotSynced, Post, RemoteError
from blogapi.wings.sync.compare import Action, Comparison
from blogapi.wings.sync.folder import Result
from blogapi.wings.transfer.folder import open_below
from blogapi.wings.transfer.images import with_urls
from blogapi.wings.transfer.items import Item, Note
from blogapi.wings.transfer.report import examples

KEPT_SLUG_LENGTH = 70  # a temporary slug keeps this many characters of the original
WRITE_ATTEMPTS = 3  # attempts to write a post that other clients keep changing


@dataclass
class Push:
    comparison: Comparison
    delete: bool = False  # move the posts of deleted files to the trash
    delete_all: bool = False  # even if most files are gone
    overwrite: bool = False  # send a file even if its post has changed
    recreate: bool = False  # recreate deleted posts
    done: dict[str, Result | None] = field(default_factory=dict, init=False)  # None while a file waits for another
    # file name -> the old and the temporary slug of its post
    parked: dict[str, tuple[str, str]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Find the files to send. Raises RemoteError if the push is not allowed."""
        comparison, working = self.comparison, self.comparison.working
        self.working, self.entries, self.items, self.remote = working, working.entries, working.items, comparison.remote
        self.by_slug = {post["slug"]: name for name in self.entries if (post := comparison.post_of[name])}
        gone = [name for name in self.entries if not working.exists(name) and name not in self.items]
        if self.delete and not self.delete_all:
            comparison.refuse_many(gone, self.items, "files")
        self.queue = comparison.chosen([*self.items, *gone])
        if self.remote.scope in ("published-only", *(() if working.dry_run else ("read-only",))):
            raise RemoteError(f"this key is {self.remote.scope}: a push needs a key that may write")

    def results(self) -> Iterator[Result]:
        """Send the files that have changed. Yield a result for each file."""
        for name, current in self.comparison.with_posts(self.queue):
            yield self.done.get(name) or self._attempt(name, current)

    def _attempt(self, name: str, current: Post | None) -> Result:
        self.done[name] = None
        self.done[name] = result = self.working.attempt(self._push, name, current)
        if name in self.parked:
            old, present = self.parked[name]
            if self.entries[name]["slug"] == present:  # The file was not sent.
                self._change(name, slug=old)
            self._forget_slug(name, present)
        return result

    def _push(self, name: str, current: Post | None) -> Result:
        for _ in range(WRITE_ATTEMPTS):
            action, why = self.comparison.decide(name, current)
            is_forced = action in (Action.CONFLICT, Action.UNLINK) and (self.overwrite if current else self.recreate)
            if action is Action.TRASH and self.delete and current:
                done = self._trash(name, current)
            elif (action is Action.SEND or is_forced) and name in self.items:
                done = self._send(name, current)
            else:
                return self.comparison.leave(name, current, action, why)
            if done:
                return done
            current = self.remote.post(current["id"] if current else f"by-slug/{self.items[name].fields['slug']}")
        raise Conflict("its post keeps changing: try again later")

    def _send(self, name: str, current: Post | None) -> Result | None:
        """Send a file after its images. Return None if its post has changed. Raises NotSynced or IMAGE_ERRORS."""
        item = self.items[name]
        if current and not self.overwrite and self._has_lost_images(name, current):
            raise NotSynced(f"{what_differs(item)}; push --overwrite sends the file without them")
        done = Result("updated" if current else "created", name, what_differs(item, is_new=not current))
        if self.working.dry_run:
            return done
        if current and not current["etag"]:  # The post was only listed, so its ETag is unknown.
            return None
        self.working.state.begin()
        fields = self.comparison.fields(name)
        if urls := self._upload_images(name, current):
            fields = each_text(fields, with_urls(urls))
        slug = fields.get("slug") or (current or item.fields)["slug"]
        self._free_slug(name, slug)
        current = self.entries[name] if name in self.parked else current
        if current:
            post = self.remote.write("PUT", current["id"], fields, If_Match=current["etag"])
        else:
            fields.pop("slug", None)
            post = self.remote.write("PUT", f"by-slug/{slug}", fields, If_None_Match="*")
        if post:
            self.working.record(name, post)
        return done if post else None

    def _upload_images(self, name: str, current: Post | None) -> dict[bytes, bytes]:
        """Upload a file's images. Return their URLs, and the new URLs of images that the service has moved."""
        files = self.working.image_names(self.items[name].images)
        urls = {image: self._upload(image, file) for image, file in files.items()}
        for image in self.comparison.moved_images(name, current) if current else ():
            urls[image] = self.uploaded.get(image.partition(".")[0], "")
        return {image.encode(): url.encode() for image, url in urls.items() if url}

    def _has_lost_images(self, name: str, current: Post) -> bool:
        """Return whether an unchanged file lacks images that its post still contains."""
        missing, known = self.items[name].missing, self.entries.get(name)
        if not (missing and known and known["sha256"] == self.working.sha256[name]):
            return False
        post = self.remote.post(current["id"])
        return post is not None and not all(url in dump(post) for url in missing)

    @cached_property
    def uploaded(self) -> dict[str, str]:
        """The URLs of the service's images by id, fetched on first use."""
        return self.remote.images()

    def _upload(self, name: str, file: str) -> str:
        """Upload the image in a file, unless the service already has it. Return its URL."""
        image_id, _, extension = name.partition(".")
        if image_id not in self.uploaded:
            with open_below(file, self.working.images.roots) as opened:
                data = opened.read(MAX_IMAGE_BYTES + 1)
            kind = f"image/{extension.replace('jpg', 'jpeg')}"
            self.uploaded[image_id] = self.remote.upload(shown(os.path.basename(file)), kind, data)
        return self.uploaded[image_id]

    def _trash(self, name: str, current: Post) -> Result | None:
        """Move a deleted file's post to the trash, or return None if the post has changed."""
        if not self.working.dry_run:
            self.working.state.begin()
            if not self.remote.delete(current["id"], current["etag"]):
                return None
        self.working.state.put(name, None)
        return Result("deleted", name)

    # Swapping slugs

    def _free_slug(self, name: str, slug: str) -> None:
        """Free a slug that another file gives up: send that file first or, if it is waiting, change its post's slug."""
        other = self.by_slug.get(slug, name)
        gives_up = other in self.items and self.comparison.fields(other).get("slug", slug) != slug
        if other == name or not gives_up:
            return
        if other not in self.done:
            self._attempt(other, self.remote.post(self.entries[other]["id"]))
        elif not self.done[other]:
            self.parked[other] = slug, f"{slug[:KEPT_SLUG_LENGTH].rstrip('-')}-{token_hex(4)}"
            self._change(other, slug=self.parked[other][1])
        self._forget_slug(other, slug)

    def _forget_slug(self, name: str, slug: str) -> None:
        """Remove a slug from a post's former slugs, so that another post can take it."""
        former = self.entries.get(name, {}).get("former_slugs", [])
        if slug in former:
            self._change(name, former_slugs=[other for other in former if other != slug] or None)

    def _change(self, name: str, **fields: Any) -> None:
        """Change fields of a post, but not its file. Do nothing if another client has changed the post."""
        entry = self.entries[name]
        self.working.state.begin()
        with suppress(NotSynced):
            current = entry if entry["etag"] else self.remote.post(entry["id"])
            if not current or current["fingerprint"] != entry["fingerprint"]:
                return
            if post := self.remote.write("PATCH", current["id"], fields, If_Match=current["etag"]):
                self.working.record_post(name, post, entry)


def what_differs(item: Item, is_new: bool = False) -> str:
    """Describe how the post will differ from its file."""
    why = [f"its slug is {item.fields['slug']}"] if Note.OTHER_SLUGS in item.notes else []
    hidden = item.notes.get(Note.HIDDEN)
    why += [f"a draft, because of {hidden[1]}"] if isinstance(hidden, tuple) else []
    why += ["a draft, because its program is unknown: --publish publishes it"] * (
        is_new and Note.NOT_PUBLISHED in item.notes
    )
    why += [f"images not found: {examples(item.missing)}"] if item.missing else []
    return "; ".join(why)
