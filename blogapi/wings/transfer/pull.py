"""The pull: change the files in a folder to match the posts of a service."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from marshmallow import ValidationError

from blogapi.documents import dump
from blogapi.wings.images.rebase import each_text
from blogapi.wings.markdown.files import render
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.transfer.client import Left, RemoteError
from blogapi.wings.transfer.decide import Action
from blogapi.wings.transfer.edit import with_content, with_fields
from blogapi.wings.transfer.folder import ADDRESS, IMAGES, with_addresses
from blogapi.wings.transfer.ignored import MINE
from blogapi.wings.transfer.items import Item
from blogapi.wings.transfer.names import valid_slug
from blogapi.wings.transfer.remote import Post
from blogapi.wings.transfer.state import Entry, entry_of
from blogapi.wings.transfer.working import Result, WorkingFolder

UNLIKE = "a file here cannot say the same as its post: the folder may hide it, or change its fields"
FORCED = (Action.CONFLICT, Action.TRASH)  # that `theirs` answers with the post
EDITS = 3  # attempts to edit a file before it is rewritten


@dataclass
class Pull:
    """A pull into a folder."""

    working: WorkingFolder
    delete: bool = False  # removes files whose posts are gone
    delete_all: bool = False  # even if most posts are gone
    theirs: bool = False  # writes files that have changed or are gone, too, and keeps yours aside
    published: bool = False  # creates files for published posts only
    images: bool = False  # fetches images

    def prepare(self) -> int:
        """Find the files to write; return the number of results."""
        working = self.working
        gone = [name for name in working.entries if not working.post_of[name]]
        if (gone or self.delete) and working.scope == "published-only":  # It does not see which are gone.
            if self.delete:
                raise RemoteError("this key sees only published posts, not which are gone: leave out --delete")
            gone = []
        if self.delete and not self.delete_all:
            working.refuse_many(gone, working.posts, "posts")
        names = {working.names[post_id]: post for post_id, post in working.posts.items()}
        wanted = [name for name in names if name in working.entries or self._is_wanted(name, names[name])]
        self.names = [name for name in (*wanted, *gone) if working.is_wanted(name)]
        return len(self.names)

    def _is_wanted(self, name: str, post: Post) -> bool:
        return post["status"] == "published" or not self.published or name in self.working.items

    def results(self) -> Iterator[Result]:
        """Write what has changed in the service; yield what was done with each file."""
        for name, post, there in self.working.looked(self.names):
            yield self.working.attempt(self._pull, name, post, there)

    def _pull(self, name: str, post: Post | None, there: Entry | None) -> Result:
        if why := self.working.left_out.get(name):
            return "left out", name, why
        action, why = self.working.decide(name, there, verify=True)
        if action is Action.TRASH and self.theirs and there and (found := self.working.remote.post(there["id"])):
            post, there = found[0], entry_of(*found)
        if post and there and (action is Action.WRITE or (self.theirs and action in FORCED)):
            return self._write(name, post, there, is_mine=action is Action.CONFLICT)
        if action is Action.UNLINK and self.delete:
            self.working.remove(name)
            if not self.working.dry_run:
                self.working.state.put(name, None)
            return "deleted", name, ""
        return self.working.left(name, there, action, why)

    def _write(self, name: str, post: Post, there: Entry, is_mine: bool) -> Result:
        is_there = self.working.folder.exists(name)
        data = self._with_images(name, self._written(name, post, there))
        why = f"yours is {self._keep(name)}" if is_there and is_mine else ""
        self.working.write(name, data)
        self.working.record(name, there)
        return "updated" if is_there else "created", name, why

    def _keep(self, name: str) -> str:
        """Copy the local file to another name; return that name."""
        data, kept = self.working.bytes_of(name), PurePosixPath(name).stem + MINE
        path = str(PurePosixPath(name).with_name(kept))
        if not self.working.folder.exists(path):
            self.working.write(path, data)
        elif self.working.folder.read_bytes(path) != data:  # A pull that was killed has left the same bytes.
            raise Left("conflict", f"it has changed on both sides, and {kept} is in the way")
        return kept

    # Contents of files

    def _written(self, name: str, post: Post, there: Entry) -> bytes:
        """Return the new bytes of a file: the old ones with some lines edited or, if that fails, all new ones.

        Raises Left if the file could not say the same as the post.
        """
        item = self.working.items.get(name)
        if not item:
            return self._checked(name, render(post), there)
        links, lacking = self._links(name, item.images), self.working.lacking(name, there)
        with suppress(MarkdownError, ValidationError):
            old = _as_in(post, item.fields["content"])
            data = with_content(self.working.bytes_of(name), old, post["content"], links)
            for _ in range(EDITS):
                now, said = self._read(name, data)
                if self.working.says(said, there) == there["said"] and lacking <= now.file.sources.keys():
                    return data
                data = with_fields(data, now.file, _as_in(post, said), post, lacking)
        data = render(post | {"content": links(post["content"])}, flat=bool(item.file.others))
        return self._checked(name, data, there)

    def _read(self, name: str, data: bytes) -> tuple[Item, Post]:
        """Read the new bytes of a file, and what a push would send. Raises MarkdownError, ValidationError."""
        now = self.working.item_of(name, data)
        # A copy of the folder without its state needs the slug.
        return now, self.working.fields(name, now) | {"slug": valid_slug(now.fields["slug"])}

    def _checked(self, name: str, data: bytes, there: Entry) -> bytes:
        """Return the new bytes of a file. Raises Left if a push of them would change the post."""
        with suppress(MarkdownError, ValidationError):
            if self.working.says(self._read(name, data)[1], there) == there["said"]:
                return data
        raise Left("failed", UNLIKE)

    def _links(self, name: str, images: tuple[str, ...]) -> Callable[[str], str]:
        """Return a function that replaces addresses of images with links to the files of the previous version."""
        folder, static = os.path.dirname(os.path.realpath(self.working.top / name)), self.working.options.static
        root = os.path.join(os.path.realpath(static), "") if static else "\0"
        links = {
            image.encode(): quote(
                f"/{file.removeprefix(root)}" if file.startswith(root) else os.path.relpath(file, folder)
            ).encode()
            for image, file in self.working.image_names(images).items()
        }
        return with_addresses(links)

    def _with_images(self, name: str, data: bytes) -> bytes:
        """Fetch the images in a file if they are wanted, and make their addresses relative. Raises OSError, Left."""
        if not self.images or self.working.dry_run:
            return data
        above = "../" * name.count("/")
        return ADDRESS.sub(lambda match: self._fetched(match[1].decode(), above) or match[0], data)

    def _fetched(self, file: str, above: str) -> bytes:
        """Fetch an image; return the link to its file, or b"" if the service does not have it."""
        path = f"{IMAGES}/{file}"
        if not self.working.folder.exists(path):
            data = self.working.remote.image(f"/{path}")
            if data is None:
                return b""
            if not hashlib.sha256(data).hexdigest().startswith(file.partition(".")[0]):
                raise Left("failed", f"the image {file} is damaged")
            self.working.write(path, data)
        return f"{above}{path}".encode()


def _as_in(post: Post, value: Any) -> Any:
    """Return a value from a file, with each image at the address that it has in a post."""
    return each_text(value, with_addresses({match[1]: match[0] for match in ADDRESS.finditer(dump(post).encode())}))
