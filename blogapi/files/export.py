"""The export: a folder with a Markdown file for each post."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple

from blogapi.files.front_matter import MarkdownError
from blogapi.files.markdown import MAX_FILE_BYTES, parse, render
from blogapi.post import is_slug


class Summary(NamedTuple):
    """How many files an export dealt with."""

    written: int
    unchanged: int
    deleted: int
    failed: tuple[str, ...] = ()  # the reasons why files could not be written or removed


def export(posts: Iterable[Mapping[str, Any]], folder: Path, *, delete: bool = False) -> Summary:
    """Write each post to SLUG.md in a folder, which is created if it is missing. Raise OSError if it cannot be.

    A file with the same bytes is not touched; any other is replaced atomically. If a file cannot be written or removed,
    the others still are. With `delete`, the files of posts that are gone are removed: regular files SLUG.md whose front
    matter has that slug and all that an export writes.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot create the folder {folder}: {error.strerror}") from error
    kept: set[str] = set()
    failed: list[str] = []
    written = deleted = 0
    for post in posts:
        name = f"{post['slug']}.md"
        kept.add(name)
        data = render(post)
        if _has(folder / name, data):
            continue
        try:
            _replace(folder, name, data, post.get("published_at") or post["created_at"])
            written += 1
        except OSError as error:
            failed.append(f"cannot write {folder / name}: {error.strerror}")
    unchanged = len(kept) - written - len(failed)
    for path in sorted(folder.iterdir()) if delete else ():
        try:
            if path.name not in kept and _is_exported(path):
                path.unlink()
                deleted += 1
        except OSError as error:
            failed.append(f"cannot remove {path}: {error.strerror}")
    return Summary(written, unchanged, deleted, tuple(failed))


def _has(path: Path, data: bytes) -> bool:
    """Return whether a path is a regular file with these bytes. A link is not followed."""
    try:
        state = path.lstat()
        return S_ISREG(state.st_mode) and state.st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


def _replace(folder: Path, name: str, data: bytes, when: str) -> None:
    part = folder / f".{name}.part"
    part.unlink(missing_ok=True)  # of an export that was killed
    seconds = datetime.fromisoformat(when).timestamp()
    try:
        with part.open("xb") as file:
            file.write(data)
        os.utime(part, (seconds, seconds))
        part.replace(folder / name)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _is_exported(path: Path) -> bool:
    slug, state = path.name.removesuffix(".md"), path.lstat()
    if path.suffix != ".md" or not is_slug(slug) or not S_ISREG(state.st_mode) or state.st_size > MAX_FILE_BYTES:
        return False
    try:
        document = parse(path.read_bytes())
    except MarkdownError:
        return False
    return document.fields.get("slug") == slug and document.is_exported
