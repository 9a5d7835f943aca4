"""Read the posts in exports of Ghost (JSON)."""

import re
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

from blogapi.clock import rfc3339
from blogapi.wings.markdown.dates import rfc3339_or_empty
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.transfer.feeds import read_json_feed
from blogapi.wings.transfer.folder import load_json
from blogapi.wings.transfer.items import ExportedPost, LeftOut

MAX_EXPORT_BYTES = 128 * 1024 * 1024  # An export is parsed as a whole.
# Ghost's placeholder for the address of the site, which is not in the export.
SITE = "__GHOST_URL__"
# Names of values that only a site's templates use
TEMPLATE_NAMES = (
    *("canonical_url", "meta_title", "meta_description", "visibility"),
    *("feature_image_alt", "feature_image_caption"),
)
# How text begins in Ghost's formats other than HTML
TEXT_STARTS = {"lexical": r'"text":"[^"]', "mobiledoc": r'\[0,\[[\d,]*\],\d+,"[^"]'}

Row = dict[str, Any]
Names = dict[Any, list[str]]  # of the tags or authors of each post, by its id


def read_posts(path: Path) -> Iterator[ExportedPost | LeftOut]:
    """Yield the posts of an export of Ghost, or of a JSON Feed. Raises MarkdownError."""
    if path.stat().st_size > MAX_EXPORT_BYTES:
        raise MarkdownError(f"must have at most {MAX_EXPORT_BYTES // 1024**2} MiB")
    try:
        export = load_json(path.read_text(encoding="utf-8-sig"))
        if isinstance(export, dict) and "jsonfeed.org" in str(export.get("version")):
            yield from read_json_feed(export)
            return
        data = export["db"][0]["data"] if "db" in export else export["data"]
        tags, authors = _tags(data), _authors(data)
        meta = {row["post_id"]: row for row in data.get("posts_meta", [])}
        rows = [(row, "page" if row.get("page") else str(row.get("type", "post"))) for row in data["posts"]]
    except ValueError:
        raise MarkdownError("not valid JSON") from None
    except (LookupError, TypeError, AttributeError):
        raise MarkdownError("not an export of Ghost") from None
    for row, kind in rows:
        yield _post(row, kind, meta, tags, authors) if kind in ("post", "page") else LeftOut(kind)


def _post(row: Row, kind: str, meta: dict[Any, Row], tags: Names, authors: Names) -> ExportedPost:
    post = ExportedPost(str(row.get("id")), {"slug": row.get("slug")}, kind)
    try:
        row_and_meta = row | meta.get(row["id"], {})
        params = _params(row_and_meta, authors.get(row["id"], []))
        post.fields = _fields(row_and_meta, tags) | {"params": params}
        post.created_at = _time(row.get("created_at"))
        post.date_text = str(row.get("published_at") or "")
        post.values = {name: row_and_meta.get(name) or "" for name in ("visibility", "status", "email_only")}
    except MarkdownError as error:
        post.error = error.reason
    except (LookupError, TypeError, ValueError, AttributeError):
        post.error = "its fields are not those of a post"
    return post


def _tags(data: Row) -> Names:
    """Return the names of the tags of each post, without those that Ghost calls internal."""
    names = {tag["id"]: tag["name"] for tag in data.get("tags", []) if tag.get("visibility") != "internal"}
    return _names_of_posts(names, "tag_id", data.get("posts_tags", []))


def _authors(data: Row) -> Names:
    """Return the names of the authors of each post; Ghost 1 has one, `author_id`."""
    names = {user["id"]: user.get("name") for user in data.get("users", [])}
    own = [{"post_id": row.get("id"), "author_id": row.get("author_id"), "sort_order": inf} for row in data["posts"]]
    return _names_of_posts(names, "author_id", [*data.get("posts_authors", []), *own])


def _names_of_posts(names: dict[Any, str], key: str, links: list[Row]) -> Names:
    """Return the names that are linked to each post, in order."""
    found: Names = {}
    for link in sorted(links, key=lambda link: link.get("sort_order") or 0):
        of_post = found.setdefault(link["post_id"], [])
        if (name := names.get(link[key])) and name not in of_post:
            of_post.append(name)
    return found


def _params(row: Row, authors: list[str]) -> dict[str, Any]:
    """Return the values that only a site's templates use."""
    texts = {name: text.replace(SITE, "") for name in TEMPLATE_NAMES if (text := row.get(name))}
    featured = {"featured": bool(row["featured"])} if row.get("featured") is not None else {}
    return ({"authors": authors} if authors else {}) | texts | featured


def _fields(row: Row, tags: Names) -> dict[str, Any]:
    """Return the fields of a post, except its params. Raises MarkdownError."""
    names = ("title", "slug", "html", "custom_excerpt", "feature_image", "image", "markdown", "mobiledoc", "lexical")
    text = {name: row.get(name) or "" for name in names}
    for name, value in (*text.items(), *(("tags", tag) for tag in tags.get(row["id"], []))):
        if not isinstance(value, str):
            raise MarkdownError(f"`{name}` must be text")
    html = text["html"].replace(SITE, "")
    content = "" if html else text["markdown"] or _markdown_card(text["mobiledoc"])
    for name, start in TEXT_STARTS.items():
        if not html and not content and re.search(start, text[name]):
            raise MarkdownError(f"its content is `{name}` without HTML: publish it in Ghost, or export it with HTML")
    status = row.get("status")
    return {
        "title": text["title"],
        "slug": text["slug"],
        "status": status if status in ("published", "scheduled") else "draft",
        "published_at": _time(row.get("published_at")),
        "tags": tags.get(row["id"], []),
        "excerpt": text["custom_excerpt"],
        "cover_image": (text["feature_image"] or text["image"]).replace(SITE, ""),
        "html": html,
        "content": content,
    }


def _markdown_card(mobiledoc: str) -> str:
    """Return the Markdown of a post of Ghost 1 or 2."""
    cards = load_json(mobiledoc or "{}").get("cards", [])
    texts = [card[1].get("markdown", "") for card in cards if card[0] in ("card-markdown", "markdown")]
    return "\n\n".join(filter(None, texts))


def _time(value: Any) -> str:
    if not isinstance(value, int):
        return rfc3339_or_empty(value or "")
    try:
        return rfc3339(value / 1000)  # Ghost 0: milliseconds
    except (ValueError, OverflowError, OSError):
        return ""
