"""The export: a folder with a Markdown file for each post, and the images that these show."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import Any

from blogapi.files.front_matter import MarkdownError
from blogapi.files.markdown import MAX_FILE_BYTES, parse, render
from blogapi.images import EXTENSIONS
from blogapi.post import is_slug
from blogapi.storage import images
from blogapi.storage.engine import Reader
from blogapi.storage.images import IMAGE_ID, StoredImage

IMAGES = "images"  # the folder of images, and how their addresses begin
IMAGE_FILE = rf"{IMAGE_ID}\.(?:{'|'.join(EXTENSIONS.values())})"
# The address of an image, on any host, as that of the service may have changed
ADDRESS = re.compile(rf"(?:https?://[^\s\"'<>()]{{1,300}}?|(?<![\w./~%-]))/{IMAGES}/({IMAGE_FILE})\b".encode())


def export(
    posts: Iterable[Mapping[str, Any]],
    folder: Path,
    database: Reader | None = None,
    *,
    delete: bool = False,
    flat: bool = False,
    standalone: bool = False,
) -> dict[Path, str]:
    """Write each post to SLUG.md in a folder, which is created if it is missing. Raise OSError if it cannot be.

    Write the images in the `database` that posts show, too; if it is `standalone`, the addresses lead to these files.
    Return whether each file was written, unchanged, deleted or kept, or why it could not be. With `delete`, remove the
    files of posts that are gone: regular files SLUG.md whose front matter has that slug and all that an export writes;
    and images that no post shows any more. If it is `flat`, names in `params` are at the top level.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot create the folder {folder}: {error.strerror}") from error
    results: dict[Path, str] = {}
    for post in posts:
        data = render(post, flat=flat)
        for name in {name.decode() for name in ADDRESS.findall(data)} if database else ():
            results |= _write_image(folder / IMAGES / name, database, results)
        if standalone:
            data = ADDRESS.sub(partial(_relative, folder, results), data)
        path = folder / f"{post['slug']}.md"
        results[path] = _attempt("write", _write, path, data, post.get("published_at") or post["created_at"])
    if delete:
        for remove, parent in ((_remove, folder), (_remove_image, folder / IMAGES)):
            left = [path for path in sorted(parent.iterdir()) if path not in results] if parent.is_dir() else []
            results |= {path: _attempt("remove", remove, path) for path in left}
    return results


def _write_image(path: Path, database: Reader, results: Mapping[Path, str]) -> dict[Path, str]:
    """Write an image, if there is one and it was not written before; return the result."""
    image = images.find_any(database, path.stem) if path not in results else None
    if not image or not image.path.endswith(path.name):
        return {}
    return {path: _attempt("write", _write_pieces, path, image, database)}


def _relative(folder: Path, results: Mapping[Path, str], match: re.Match[bytes]) -> bytes:
    name = match[1].decode()
    return f"{IMAGES}/{name}".encode() if folder / IMAGES / name in results else match[0]


def _attempt(verb: str, function: Callable[..., str], path: Path, *arguments: Any) -> str:
    try:
        return function(path, *arguments)
    except OSError as error:
        return f"cannot {verb} {path}: {error.strerror}"


def _write(path: Path, data: bytes, when: str) -> str:
    """Replace a file, unless it is a regular one with the same bytes."""
    with suppress(OSError):
        state = path.lstat()
        if S_ISREG(state.st_mode) and state.st_size == len(data) and path.read_bytes() == data:
            return "unchanged"
    return _replace(path, [data], when)


def _write_pieces(path: Path, image: StoredImage, database: Reader) -> str:
    """Replace the file of an image, unless it is a regular one with the same bytes: the id is their hash."""
    path.parent.mkdir(exist_ok=True)
    with suppress(OSError):
        if S_ISREG(path.lstat().st_mode):
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest().startswith(image.id):
                    return "unchanged"
    return _replace(path, images.read(database, image, 0, image.bytes), image.created_at)


def _replace(path: Path, pieces: Iterable[bytes], when: str) -> str:
    """Replace a file atomically, with a time. A link is not followed."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)  # of an export that was killed
    seconds = datetime.fromisoformat(when).timestamp()
    try:
        with part.open("xb") as file:
            file.writelines(pieces)
        os.utime(part, (seconds, seconds))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return "written"


def _remove(path: Path) -> str:
    """Remove an exported file; keep any other."""
    slug, state = path.name.removesuffix(".md"), path.lstat()
    if path.suffix == ".md" and is_slug(slug) and S_ISREG(state.st_mode) and state.st_size <= MAX_FILE_BYTES:
        with suppress(MarkdownError):
            file = parse(path.read_bytes())
            if file.is_exported and file.fields.get("slug") == slug:
                path.unlink()
                return "deleted"
    return "kept"


def _remove_image(path: Path) -> str:
    """Remove an image; keep any other file."""
    if re.fullmatch(IMAGE_FILE, path.name) and S_ISREG(path.lstat().st_mode):
        path.unlink()
        return "deleted"
    return "kept"
