"""Read the posts in exports of Substack: the table posts.csv, and a file with HTML for each post."""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blogapi.wings.markdown.dates import time_or_nothing
from blogapi.wings.markdown.files import MAX_FILE_BYTES
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.transfer.images import open_below, real_folders

POSTS_TABLE = "posts.csv"
COLUMNS = {"post_id", "post_date", "is_published", "title"}


def read_posts(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the posts of an export like `wordpress.read_posts`. Raises MarkdownError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {*(rows.fieldnames or ())} >= COLUMNS:
                raise MarkdownError("not an export of Substack")
            for row in rows:
                yield _post(path.parent, {name: value or "" for name, value in row.items() if isinstance(value, str)})
    except (csv.Error, UnicodeDecodeError) as error:
        raise MarkdownError(f"not valid CSV: {error}") from None


def _post(folder: Path, row: dict[str, str]) -> dict[str, Any]:
    number, _, slug = row.get("post_id", "").partition(".")
    is_published, when = row.get("is_published", "").lower() == "true", time_or_nothing(row.get("post_date", ""))
    post = {"kind": "post", "id": number, "slug": slug, "title": row.get("title", "")}
    path = folder / "posts" / f"{row.get('post_id', '')}.html"
    try:
        with open_below(path, real_folders([folder])) as file:
            html = file.read(MAX_FILE_BYTES).decode()
    except FileNotFoundError:
        return post | {"error": "the file with its HTML is missing"} if is_published else {"kind": "draft without text"}
    except (OSError, ValueError):
        return post | {"error": "the file with its HTML cannot be read"}
    return post | {
        "path": f"/p/{slug}" if slug else "",
        "status": "published" if is_published else "draft",
        "published_at": when,
        "created_at": when,
        "excerpt": row.get("subtitle", ""),
        "html": html,
        "file": str(path),
        "params": {name: row[name] for name in ("type", "podcast_url") if row.get(name)},
        "values": {"audience": row.get("audience", ""), "status": "published" if is_published else "draft"},
    }
