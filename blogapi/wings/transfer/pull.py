"""The pull: change the files in a folder to match the posts of a service."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from marshmallow import ValidationError

from blogapi.clock import rfc3339
from blogapi.documents import dump
from blogapi.wings.images.formats import MAX_BYTES
from blogapi.wings.images.rebase import each_text
from blogapi.wings.markdown.files import render
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.transfer.edit import with_content, with_fields
from blogapi.wings.transfer.folder import ADDRESS, IMAGES, with_addresses
from blogapi.wings.transfer.names import valid_slug
from blogapi.wings.transfer.push import GONE_HERE_CHANGED, GONE_THERE, GONE_THERE_CHANGED, attempt, look
from blogapi.wings.transfer.remote import Left, Post, Remote, RemoteError
from blogapi.wings.transfer.working import MINE, Entry, Result, WorkingFolder, entry_of, is_same_post

FORCED = "push --force creates it again, pull --delete --force removes the file"
EDITS = 3  # attempts to edit a file before it is written anew


@dataclass
class Pull:
    """A pull into a folder."""

    working: WorkingFolder
    remote: Remote
    delete: bool  # removes files whose posts are gone
    theirs: bool  # writes files that have changed, too, and keeps yours aside
    published: bool  # creates files for published posts only
    images: bool  # fetches images

    def prepare(self) -> int:
        """Read both sides; return the greatest possible number of results."""
        sees_all = self.remote.scope() != "published-only"
        if self.delete and not sees_all:
            raise RemoteError("this key sees only published posts, not which are gone: leave out --delete")
        self.working.read()
        self.names = {entry["id"]: name for name, entry in self.working.entries.items() if self.working.listed(entry)}
        gone = [name for name, entry in self.working.entries.items() if not self.working.listed(entry)]
        self.gone = gone if sees_all else []
        if self.delete and self.gone and not self.working.posts and not self.working.force:
            raise RemoteError("the blog has no posts: --force removes all files")
        new = {name: item for name, item in self.working.items.items() if name not in self.working.entries}
        self.new_names = {item.fields["slug"]: name for name, item in new.items()}
        return len(self.working.posts) + len(self.gone)

    def results(self) -> Iterator[Result]:
        """Write what has changed in the service; yield what was done with each file."""
        wanted = set()
        for post_id, post in self.working.posts.items():
            name = self.names.get(post_id, "")
            entry = self.working.entries.get(name)
            if self.working.is_as_known(entry, post):
                yield self._unchanged(name)
            elif entry or post["status"] == "published" or not self.published:
                wanted.add(post_id)
        for post, etag in look(self.remote, wanted):
            name = self.names.get(post["id"]) or self.new_names.get(post["slug"]) or f"{post['slug']}.md"
            if not is_same_post(self.working.entries.get(name, post), post):  # Another post had this slug.
                name = f"{post['slug']}-{post['id']}.md"
            yield attempt(self._pull, name, post, entry_of(post, etag))
        yield from (attempt(self._pull_gone, name) for name in self.gone)

    def _unchanged(self, name: str) -> Result:
        if self.working.exists(name):
            return "unchanged", name, ""
        return "gone here", name, "push --delete moves its post to the trash"

    def _pull(self, name: str, post: Post, there: Entry) -> Result:
        entry, is_there = self.working.entries.get(name), self.working.exists(name)
        if entry and not is_same_post(entry, post):
            raise Left("conflict", "it is the file of another post")
        relation = self.working.compare(name, there) if entry or is_there else "there"
        if relation in ("same", "here"):
            self.working.record(name, there, entry["sha256"] if entry and relation == "here" else "", at_once=False)
            return self._unchanged(name)
        if relation != "there" and not self.theirs:
            raise Left("conflict", relation if is_there else GONE_HERE_CHANGED)
        data = self._with_images(name, self._written(name, post, there))
        is_mine = is_there and (not entry or self.working.has_changed(name))
        why = f"yours is {self._keep(name)}" if is_mine else ""
        self.working.write(name, data, post.get("published_at") or post["created_at"])
        self.working.record(name, there, hashlib.sha256(data).hexdigest(), at_once=False)
        return "updated" if is_there else "created", name, why

    def _keep(self, name: str) -> str:
        """Copy the local file to another name; return that name."""
        data, kept = self.working.bytes_of(name), PurePosixPath(name).stem + MINE
        path = str(PurePosixPath(name).with_name(kept))
        if not self.working.exists(path):
            self.working.write(path, data, rfc3339(os.stat(self.working.top / name).st_mtime))
        elif self.working.read_bytes(path) != data:  # A pull that was killed has left the same bytes.
            raise Left("conflict", f"it has changed on both sides, and {kept} is in the way")
        return kept

    def _pull_gone(self, name: str) -> Result:
        """Handle a file whose post is gone."""
        is_there = self.working.exists(name)
        if is_there and not self.delete:
            return "gone there", name, GONE_THERE
        if is_there and self.working.files.sha256.get(name) != self.working.entries[name]["sha256"]:
            raise Left("conflict", GONE_THERE_CHANGED)
        if is_there and not self.working.force and self._may_be_lost(self.working.entries[name]["id"]):
            raise Left("conflict", "its post was not deleted, but is gone, as after restoring a backup: " + FORCED)
        if is_there:
            self.working.remove(name)
        self.working.forget(name)
        return "deleted" if is_there else "unchanged", name, ""

    def _may_be_lost(self, post_id: str) -> bool:
        """Return whether a post that is gone may be missing because the database was replaced by an older one."""
        newest = max(map(int, self.working.posts), default=0)
        if int(post_id) < newest and post_id not in self.working.posts:
            return False
        return self.remote.send("GET", f"/v1/trash/{post_id}", also=(404,)).status == 404

    # Contents of files

    def _written(self, name: str, post: Post, there: Entry) -> bytes:
        """Return the new bytes of a file: the old ones with some lines edited or, if that fails, all new ones."""
        item = self.working.items.get(name)
        if not item:
            return render(post)
        links = self._links(name, item.images)
        with suppress(MarkdownError, ValidationError):
            old = _as_in(post, item.fields["content"])
            data = with_content(self.working.bytes_of(name), old, post["content"], links)
            for _ in range(EDITS):
                now = self.working.files.item_of(name, data)
                said = self.working.fields(name, now)
                said["slug"] = valid_slug(now.fields["slug"])  # A copy of the folder without its state needs it.
                if self.working.says(said, there) == there["said"]:
                    return data
                data = with_fields(data, now.file, _as_in(post, said), post)
        return render(post | {"content": links(post["content"])}, flat=bool(item.file.others))

    def _links(self, name: str, images: tuple[str, ...]) -> Callable[[str], str]:
        """Return a function that replaces addresses of images with links to the files that the old file shows."""
        folder = os.path.dirname(os.path.realpath(self.working.top / name))
        files = self.working.image_names(images)
        return with_addresses({name.encode(): quote(os.path.relpath(files[name], folder)).encode() for name in files})

    def _with_images(self, name: str, data: bytes) -> bytes:
        """Fetch the images in a file if they are wanted, and make their addresses relative. Raises OSError, Left."""
        if not self.images or self.working.dry_run:
            return data
        above = "../" * name.count("/")
        return ADDRESS.sub(lambda match: self._fetched(match[1].decode(), above) or match[0], data)

    def _fetched(self, file: str, above: str) -> bytes:
        """Fetch an image; return the link to its file, or b"" if the service does not have it."""
        path = f"{IMAGES}/{file}"
        if not self.working.exists(path):
            answer = self.remote.send("GET", f"/{path}", also=(404,), max_bytes=MAX_BYTES)
            if answer.status == 404:
                return b""
            if not hashlib.sha256(answer.data).hexdigest().startswith(file.partition(".")[0]):
                raise Left("failed", f"the image {file} is damaged")
            self.working.write(path, answer.data, rfc3339(time.time()))
        return f"{above}{path}".encode()


def _as_in(post: Post, value: Any) -> Any:
    """Return a value from a file, with each image at the address that it has in a post."""
    return each_text(value, with_addresses({match[1]: match[0] for match in ADDRESS.finditer(dump(post).encode())}))
