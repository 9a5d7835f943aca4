"""Pull: change the files in a folder to match the posts of a service."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from urllib.parse import quote

from marshmallow import ValidationError

from blogapi.documents import each_text
from blogapi.markdown.files import render
from blogapi.markdown.front_matter import MarkdownError, split
from blogapi.wings.sync.client import Conflict, NotSynced, Post, RemoteError, images_in
from blogapi.wings.sync.compare import Action, Comparison
from blogapi.wings.sync.edit import with_content, with_fields
from blogapi.wings.sync.folder import MINE, Result
from blogapi.wings.transfer.folder import MAX_NAME_BYTES
from blogapi.wings.transfer.images import IMAGE_FOLDER, IMAGE_URL, with_urls
from blogapi.wings.transfer.importer import schema
from blogapi.wings.transfer.items import Item
from blogapi.wings.transfer.names import valid_slug

EDITS = 3  # attempts to edit a file before rewriting it


@dataclass
class Pull:
    comparison: Comparison
    delete: bool = False  # remove the files of deleted posts
    delete_all: bool = False  # even if most posts are gone
    theirs: bool = False  # also write files that were deleted here, or (after copying them) changed here
    published: bool = False  # create files only for published posts
    images: bool = False  # fetch images

    def __post_init__(self) -> None:
        """Find the files to write. Raises RemoteError if `delete` is not allowed."""
        comparison, working = self.comparison, self.comparison.working
        self.working, self.remote, self.items = working, comparison.remote, working.items
        gone = [name for name in working.entries if not comparison.post_of[name]]
        if (gone or self.delete) and self.remote.scope == "published-only":  # An unpublished post looks deleted.
            if self.delete:
                raise RemoteError("this key sees only published posts: leave out --delete")
            gone = []
        if self.delete and not self.delete_all:
            comparison.refuse_many(gone, comparison.posts, "posts")
        known = {*working.entries, *self.items}
        posts = {name: post["status"] for name, post in comparison.post_of.items() if post}
        names = [name for name in posts if not self.published or name in known or posts[name] == "published"]
        self.queue = comparison.chosen([*names, *gone])

    def results(self) -> Iterator[Result]:
        """Write the files of posts that have changed. Yield a result for each file."""
        for name, current in self.comparison.with_posts(self.queue):
            yield self.working.attempt(self._pull, name, current)

    def _pull(self, name: str, current: Post | None) -> Result:
        if why := self.working.left_out.get(name):
            return Result("left out", name, why)
        action, why = self.comparison.decide(name, current)
        if current and (action is Action.WRITE or (self.theirs and action in (Action.CONFLICT, Action.TRASH))):
            post = current if "content" in current else self.remote.post(current["id"])
            if post:
                return self._write(name, post, is_mine=action is Action.CONFLICT)
        if action is Action.UNLINK and self.delete:
            self.working.remove(name)
            self.working.state.put(name, None)
            return Result("deleted", name)
        return self.comparison.leave(name, current, action, why)

    def _write(self, name: str, post: Post, is_mine: bool) -> Result:
        exists = self.working.exists(name)
        data = self._with_images(name, self._render(name, post))
        why = f"your version is now {self._keep(name)}" if exists and is_mine else ""
        self.working.write(name, data)
        if not self.working.dry_run:
            self.working.record(name, post)
        return Result("updated" if exists else "created", name, why)

    def _keep(self, name: str) -> str:
        """Copy the local file, and return the name of the copy."""
        stem = os.fsencode(PurePosixPath(name).stem)[: MAX_NAME_BYTES - len(MINE)].decode(errors="ignore")
        data, kept = self.working.bytes_of(name), stem + MINE
        path = str(PurePosixPath(name).with_name(kept))
        if not self.working.exists(path):
            self.working.write(path, data)
        elif self.working.folder.read_bytes(path) != data:  # A killed pull may have left the same bytes.
            raise Conflict(f"it has changed on both sides, and {kept} exists already")
        return kept

    # Contents of files

    def _render(self, name: str, post: Post) -> bytes:
        """Return a file's new bytes, edited if possible. Raises NotSynced if no file can match the post."""
        item = self.items.get(name)
        links: Callable[[str], str] = self._links(name, item.images) if item else str
        with suppress(MarkdownError, ValidationError):
            if item and (data := self._edit(name, item, post, links)):
                return data
        with suppress(MarkdownError, ValidationError):
            data = render(post | {"content": links(post["content"])}, flat=bool(item and item.file.others))
            if self.comparison.is_no_op(self._read(name, data).fields, post):
                return data
        raise NotSynced("no file here can match the post: settings in the folder may hide it or change its fields")

    def _edit(self, name: str, item: Item, post: Post, links: Callable[[str], str]) -> bytes | None:
        """Return a file's bytes with some lines edited to match its post, or None if that failed."""
        lacking, data = self.comparison.lacking(name, post), self.working.bytes_of(name)
        if item.file.lines and not split(data, skip_blank=True)[0]:  # Headers without delimiters are not edited.
            return None
        old, images = self.comparison.moved_images(name, post), sorted(images_in(post))
        urls = {image.encode(): f"{start}/{IMAGE_FOLDER}/{image}".encode() for start, image in images}
        moved = with_urls({image: urls[image] for image in urls if image.decode() in old})
        as_in_post = with_urls(urls)
        data = with_content(moved(data.decode()).encode(), as_in_post(item.fields["content"]), post["content"], links)
        for _ in range(EDITS):
            edited = self._read(name, data)
            if self.comparison.is_no_op(edited.fields, post) and lacking <= edited.file.sources.keys():
                return data
            data = with_fields(data, edited.file, each_text(edited.fields, as_in_post), post, lacking)
        return None

    def _read(self, name: str, data: bytes) -> Item:
        """Return the post that a file would contain with these bytes. Raises MarkdownError or ValidationError."""
        item = self.working.sources.item_of(data, self.working.top / name, self.working.top)
        assert item  # `item_of` returns None only for the status "trash", which no post has.
        slug = valid_slug(item.fields["slug"])  # A copy of the folder without its state needs the slug.
        return replace(item, fields=schema.load(item.fields | {"slug": slug}))

    def _links(self, name: str, images: tuple[str, ...]) -> Callable[[str], str]:
        """Return a function that replaces the URLs of these image files with links to the files."""
        folder, static = os.path.dirname(os.path.realpath(self.working.top / name)), self.working.static
        root = os.path.join(os.path.realpath(static), "") if static else "\0"

        def link_to(file: str) -> str:
            return quote(f"/{file.removeprefix(root)}" if file.startswith(root) else os.path.relpath(file, folder))

        names = self.working.image_names(images).items()
        return with_urls({image.encode(): link_to(file).encode() for image, file in names})

    def _with_images(self, name: str, data: bytes) -> bytes:
        """Fetch the images in a file, if requested, and make their URLs relative."""
        if not self.images or self.working.dry_run:
            return data
        above = "../" * name.count("/")
        return IMAGE_URL.sub(lambda match: self._fetch(match[1].decode(), above) or match[0], data)

    def _fetch(self, file: str, above: str) -> bytes:
        """Fetch an image. Return a link to its file, or b"" if the service does not have the image."""
        path = f"{IMAGE_FOLDER}/{file}"
        if not self.working.exists(path):
            data = self.remote.image(f"/{path}")
            if data is None:
                return b""
            if not hashlib.sha256(data).hexdigest().startswith(file.partition(".")[0]):
                raise NotSynced(f"the image {file} is damaged")
            self.working.write(path, data)
        return f"{above}{path}".encode()
