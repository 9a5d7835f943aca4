"""Export posts to a folder: a Markdown file for each post, and the images used in the posts."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from stat import S_ISREG
from typing import Any

from blogapi.documents import is_slug
from blogapi.markdown.files import MAX_FILE_BYTES, parse, render
from blogapi.markdown.front_matter import MarkdownError
from blogapi.storage.engine import Reader
from blogapi.wings.images import storage as images
from blogapi.wings.images.storage import StoredImage
from blogapi.wings.transfer.folder import Folder
from blogapi.wings.transfer.images import IMAGE_FILE, IMAGE_FOLDER, IMAGE_URL


def export(
    posts: Iterable[Mapping[str, Any]],
    path: Path,
    database: Reader,
    *,
    delete: bool = False,
    flat: bool = False,
    standalone: bool = False,
) -> dict[Path, str]:
    """Write each post to SLUG.md, and its images to images/. Raises OSError if the folder cannot be created.

    `standalone` makes image URLs relative. `flat` writes front matter for other programs. `delete` removes unused
    images, and the exported files of posts that no longer exist. Return the outcome for each file: written, unchanged,
    deleted, kept, or an error message.
    """
    results: dict[Path, str] = {}
    with closing(_create(path)) as folder:
        for post in posts:
            data = render(post, flat=flat)
            _write_images(folder, data, database, results)
            if standalone:
                data = IMAGE_URL.sub(partial(_relative, path, results), data)
            file, when = path / f"{post['slug']}.md", post.get("published_at") or post["created_at"]
            results[file] = _attempt("write", file, folder.write_bytes, file.name, data, when)
        if delete:
            _remove_others(folder, _remove_post, results)
            with suppress(OSError), closing(folder.below(IMAGE_FOLDER)) as below:  # It may be missing or a link.
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
    """Write the images used in a post, unless `results` already lists them. Add the outcomes to `results`."""
    for name in {name.decode() for name in IMAGE_URL.findall(data)}:
        path = folder.path / IMAGE_FOLDER / name
        image = images.find(database, path.stem) if path not in results else None
        if image and image.path.endswith(name):
            results[path] = _attempt("write", path, _write_image, folder, name, image, database)


def _write_image(folder: Folder, name: str, image: StoredImage, database: Reader) -> str:
    def is_same(file: Any) -> bool:  # Any, because IO[bytes] has no readinto
        return hashlib.file_digest(file, "sha256").hexdigest().startswith(image.id)

    with closing(folder.below(IMAGE_FOLDER, create=True)) as below:
        return below.write(name, images.read(database, image, 0, image.bytes), image.created_at, is_same)


def _relative(folder: Path, results: Mapping[Path, str], match: re.Match[bytes]) -> bytes:
    name = match[1].decode()
    return f"{IMAGE_FOLDER}/{name}".encode() if folder / IMAGE_FOLDER / name in results else match[0]


def _remove_others(folder: Folder, remove: Callable[[Folder, str], str], results: dict[Path, str]) -> None:
    """Remove what earlier exports wrote and this one did not. Add the outcomes to `results`."""
    for name in sorted(os.listdir(folder.file)):
        path = folder.path / name
        if path not in results:
            results[path] = _attempt("remove", path, remove, folder, name)


def _remove_post(folder: Folder, name: str) -> str:
    """Remove a file that an export wrote. Keep any other file."""
    slug, state = name.removesuffix(".md"), folder.state(name)
    if name.endswith(".md") and is_slug(slug) and S_ISREG(state.st_mode) and state.st_size <= MAX_FILE_BYTES:
        with suppress(MarkdownError), folder.open(name, "rb") as opened:
            file = parse(opened.read(MAX_FILE_BYTES))
            if file.is_exported and file.fields.get("slug") == slug:
                return folder.remove(name)
    return "kept"


def _remove_image(folder: Folder, name: str) -> str:
    """Remove an image. Keep any other file."""
    is_image = re.fullmatch(IMAGE_FILE, name) and S_ISREG(folder.state(name).st_mode)
    return folder.remove(name) if is_image else "kept"
