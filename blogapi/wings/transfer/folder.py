"""The export: write each post to a Markdown file in a folder, and the images in posts beside them."""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path, PurePosixPath
from stat import S_IMODE, S_ISREG
from typing import IO, Any

from blogapi.documents import is_slug
from blogapi.storage.engine import Reader
from blogapi.wings.images import storage as images
from blogapi.wings.images.storage import StoredImage
from blogapi.wings.markdown.files import MAX_FILE_BYTES, parse, render
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.transfer.images import IMAGE_ADDRESS, IMAGE_FILE, IMAGE_FOLDER, exists


def with_addresses(addresses: Mapping[bytes, bytes]) -> Callable[[str], str]:
    """Return a function that replaces the addresses of images in a text; the new ones are keyed by file name."""
    return lambda text: IMAGE_ADDRESS.sub(lambda match: addresses.get(match[1], match[0]), text.encode()).decode()


class Folder:
    """An open folder, whose path may later lead elsewhere. Links in it are not followed. Raises OSError."""

    def __init__(self, path: Path, parent: "Folder | None" = None):
        self.path = path
        try:
            if parent:
                self.file: int = os.open(path.name, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent.file)
            else:
                self.file = os.open(path, os.O_DIRECTORY)
        except NotADirectoryError as error:
            which = f"{path} " if parent else ""
            raise OSError(error.errno, f"{which}must be a folder, and not a link") from error

    def lock(self) -> None:
        """Lock the folder until it is closed. Raises BlockingIOError if it is locked already."""
        fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Close the folder."""
        os.close(self.file)

    def below(self, name: str, create: bool = False) -> "Folder":
        """Open a folder in this folder."""
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.file)
        return Folder(self.path / name, self)

    def state(self, name: str) -> os.stat_result:
        """Return the state of a file or link."""
        return os.stat(name, dir_fd=self.file, follow_symlinks=False)

    def open(self, name: str, mode: str) -> IO[bytes]:
        """Open a file; refuse a link."""
        flags = os.O_NOFOLLOW | os.O_NONBLOCK  # A pipe would wait for its other end.
        return open(name, mode, opener=lambda path, more: os.open(path, more | flags, 0o666, dir_fd=self.file))

    def write(self, name: str, pieces: Iterable[bytes], when: str, is_same: Callable[[IO[bytes]], bool]) -> str:
        """Replace a file atomically and set its time, unless it is a regular file with the same bytes."""
        mode = 0
        with suppress(OSError):
            if S_ISREG(mode := self.state(name).st_mode):
                with self.open(name, "rb") as file:
                    if is_same(file):
                        return "unchanged"
        part, seconds = f".{name}.part", datetime.fromisoformat(when).timestamp()
        self.remove(part)  # left by an export that was killed
        try:
            with self.open(part, "xb") as file:
                file.writelines(pieces)
                file.flush()
                os.utime(file.fileno(), (seconds, seconds))
                if S_ISREG(mode):
                    os.fchmod(file.fileno(), S_IMODE(mode))
            os.replace(part, name, src_dir_fd=self.file, dst_dir_fd=self.file)
        finally:
            self.remove(part)
        return "written"

    def write_bytes(self, name: str, data: bytes, when: str) -> str:
        """Replace a file like `write`."""
        return self.write(name, [data], when, lambda file: file.read(len(data) + 1) == data)

    def remove(self, name: str) -> str:
        """Remove a file or link if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.file)
        return "deleted"

    def exists(self, name: str) -> bool:
        """Return whether a file, or anything else, has this name, or may have it: its folder cannot be read."""
        return exists(name, self.file)

    @contextmanager
    def place(self, name: str, create: bool = False) -> Iterator[tuple["Folder", str]]:
        """Open the folder of a file without following links; yield it and the file's name in it. Raises OSError."""
        folder, (*folders, last) = self, PurePosixPath(name).parts
        with ExitStack() as opened:
            for part in folders:
                folder = opened.enter_context(closing(folder.below(part, create)))
            yield folder, last

    def read_bytes(self, name: str) -> bytes:
        """Read a file that is not a link. Raises OSError."""
        with self.place(name) as (folder, last), folder.open(last, "rb") as file:
            return file.read(MAX_FILE_BYTES + 1)


def export(
    posts: Iterable[Mapping[str, Any]],
    path: Path,
    database: Reader,
    *,
    delete: bool = False,
    flat: bool = False,
    standalone: bool = False,
) -> dict[Path, str]:
    """Write each post to SLUG.md in a folder, and the images that posts show. Raises OSError if there is no folder.

    `standalone` makes the addresses of images relative, `flat` writes front matter for other programs. `delete` removes
    images that no post shows, and the files of posts that are gone: regular files SLUG.md that an export wrote.
    Return for each file whether it was written, unchanged, deleted or kept, or why that failed.
    """
    results: dict[Path, str] = {}
    with closing(_create(path)) as folder:
        for post in posts:
            data = render(post, flat=flat)
            _write_images(folder, data, database, results)
            if standalone:
                data = IMAGE_ADDRESS.sub(partial(_relative, path, results), data)
            file, when = path / f"{post['slug']}.md", post.get("published_at") or post["created_at"]
            results[file] = _attempt("write", file, folder.write_bytes, file.name, data, when)
        if delete:
            _remove_others(folder, _remove_post, results)
            with suppress(OSError), closing(folder.below(IMAGE_FOLDER)) as below:  # It is missing, or a link.
                _remove_others(below, _remove_image, results)
    return results


def _create(path: Path) -> Folder:
    try:
        path.mkdir(parents=True, exist_ok=True)
        return Folder(path)
    except OSError as error:
        raise OSError(f"cannot create the folder {path}: {error.strerror}") from error


def _attempt(verb: str, path: Path, function: Callable[..., str], *arguments: Any) -> str:
    try:
        return function(*arguments)
    except OSError as error:
        return f"cannot {verb} {path}: {error.strerror}"


def _write_images(folder: Folder, data: bytes, database: Reader, results: dict[Path, str]) -> None:
    """Write the images that a post shows, unless an earlier post showed them, and add the results."""
    for name in {name.decode() for name in IMAGE_ADDRESS.findall(data)}:
        path = folder.path / IMAGE_FOLDER / name
        image = images.find_any(database, path.stem) if path not in results else None
        if image and image.path.endswith(name):
            results[path] = _attempt("write", path, _write_image, folder, name, image, database)


def _write_image(folder: Folder, name: str, image: StoredImage, database: Reader) -> str:
    def is_same(file: Any) -> bool:  # an IO[bytes], which has no readinto
        return hashlib.file_digest(file, "sha256").hexdigest().startswith(image.id)

    with closing(folder.below(IMAGE_FOLDER, create=True)) as below:
        return below.write(name, images.read(database, image, 0, image.bytes), image.created_at, is_same)


def _relative(folder: Path, results: Mapping[Path, str], match: re.Match[bytes]) -> bytes:
    name = match[1].decode()
    return f"{IMAGE_FOLDER}/{name}".encode() if folder / IMAGE_FOLDER / name in results else match[0]


def _remove_others(folder: Folder, remove: Callable[[Folder, str], str], results: dict[Path, str]) -> None:
    """Remove files left over from earlier exports, and add the results."""
    for name in sorted(os.listdir(folder.file)):
        path = folder.path / name
        if path not in results:
            results[path] = _attempt("remove", path, remove, folder, name)


def _remove_post(folder: Folder, name: str) -> str:
    """Remove a file that an export wrote; keep any other."""
    slug, state = name.removesuffix(".md"), folder.state(name)
    if name.endswith(".md") and is_slug(slug) and S_ISREG(state.st_mode) and state.st_size <= MAX_FILE_BYTES:
        with suppress(MarkdownError), folder.open(name, "rb") as opened:
            file = parse(opened.read(MAX_FILE_BYTES))
            if file.is_exported and file.fields.get("slug") == slug:
                return folder.remove(name)
    return "kept"


def _remove_image(folder: Folder, name: str) -> str:
    """Remove an image; keep any other file."""
    if re.fullmatch(IMAGE_FILE, name) and S_ISREG(folder.state(name).st_mode):
        return folder.remove(name)
    return "kept"
