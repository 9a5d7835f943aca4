"""Read the posts in exports of Substack: the table posts.csv, and a file with HTML for each post."""

import csv
from collections.abc import Iterator
from pathlib import Path

from blogapi.wings.markdown.dates import rfc3339_or_empty
from blogapi.wings.markdown.files import MAX_FILE_BYTES
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.transfer.folder import open_below, real_folders
from blogapi.wings.transfer.items import ExportedPost, LeftOut

POSTS_TABLE = "posts.csv"
COLUMNS = {"post_id", "post_date", "is_published", "title"}


def read_posts(path: Path) -> Iterator[ExportedPost | LeftOut]:
    """Yield the posts of an export. Raises MarkdownError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            if not {*(rows.fieldnames or ())} >= COLUMNS:
                raise MarkdownError("not an export of Substack")
            for row in rows:
                yield _post(path.parent, {name: value or "" for name, value in row.items() if isinstance(value, str)})
    except (csv.Error, UnicodeDecodeError) as error:
        raise MarkdownError(f"not valid CSV: {error}") from None


def _post(folder: Path, row: dict[str, str]) -> ExportedPost | LeftOut:
    number, _, slug = row.get("post_id", "").partition(".")
    is_published, when = row.get("is_published", "").lower() == "true", rfc3339_or_empty(row.get("post_date", ""))
    status = "published" if is_published else "draft"
    fields = {"slug": slug, "title": row.get("title", ""), "status": status, "published_at": when}
    fields |= {"excerpt": row.get("subtitle", "")}
    path = folder / "posts" / f"{row.get('post_id', '')}.html"
    post = ExportedPost(number, fields, created_at=when, paths=(f"/p/{slug}",) if slug else (), file=str(path))
    post.date_text = row.get("post_date", "")
    post.values = {"audience": row.get("audience", ""), "status": status}
    try:
        with open_below(path, real_folders([folder])) as file:
            post.fields["html"] = file.read(MAX_FILE_BYTES).decode()
    except FileNotFoundError:
        if not is_published:
            return LeftOut("draft without text")
        post.error = "the file with its HTML is missing"
    except (OSError, ValueError):
        post.error = "the file with its HTML cannot be read"
    post.fields["params"] = {name: row[name] for name in ("type", "podcast_url") if row.get(name)}
    return post
