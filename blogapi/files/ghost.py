"""The export of Ghost (JSON): its posts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blogapi.clock import rfc3339
from blogapi.files.dates import rfc3339_of
from blogapi.files.front_matter import MarkdownError

STATUSES = {"published": "published", "scheduled": "scheduled"}
# Ghost's name for the address of the site, which is not in the export.
SITE = "__GHOST_URL__"


def posts(path: Path) -> Iterator[dict[str, Any]]:
    """Read the posts: fields of a post, `created_at`, and the `html` of the content. Raise MarkdownError."""
    try:
        export = json.loads(path.read_bytes())
        data = export["db"][0]["data"] if "db" in export else export["data"]
        rows = [row for row in data["posts"] if row.get("type", "post") == "post" and not row.get("page")]
        tags = _tags(data)
        found = [_post(row, tags.get(row["id"], [])) for row in rows]
    except (ValueError, RecursionError):
        raise MarkdownError("not valid JSON") from None
    except (KeyError, IndexError, TypeError, AttributeError):
        raise MarkdownError("not an export of Ghost") from None
    yield from found


def _tags(data: dict[str, Any]) -> dict[Any, list[str]]:
    """Return the names of the tags of each post. Those that Ghost calls internal are none."""
    names = {tag["id"]: tag["name"] for tag in data.get("tags", []) if tag.get("visibility") != "internal"}
    tags: dict[Any, list[str]] = {}
    for link in sorted(data.get("posts_tags", []), key=lambda link: link.get("sort_order") or 0):
        if link["tag_id"] in names:
            tags.setdefault(link["post_id"], []).append(names[link["tag_id"]])
    return tags


def _post(row: dict[str, Any], tags: list[str]) -> dict[str, Any]:
    public = row.get("visibility", "public") == "public"  # what only members may read is not made public
    html = (row.get("html") or "").replace(SITE, "")
    return {
        "id": str(row["id"]),
        "title": row.get("title") or "",
        "slug": row.get("slug") or "",
        "status": STATUSES.get(row.get("status"), "draft") if public else "draft",
        "published_at": _time(row.get("published_at")),
        "created_at": _time(row.get("created_at")),
        "tags": tags,
        "excerpt": row.get("custom_excerpt") or "",
        "cover_image": (row.get("feature_image") or row.get("image") or "").replace(SITE, ""),
        "html": html,
        "content": "" if html else row.get("markdown") or _markdown_card(row.get("mobiledoc")),
    }


def _markdown_card(mobiledoc: str | None) -> str:
    """Return the Markdown of a post as Ghost 1 and 2 kept it."""
    cards = json.loads(mobiledoc or "{}").get("cards", [])
    texts = [card[1].get("markdown", "") for card in cards if card[0] in ("card-markdown", "markdown")]
    return "\n\n".join(filter(None, texts))


def _time(value: Any) -> str:
    try:
        return rfc3339(value / 1000) if isinstance(value, int) else rfc3339_of(value or "")  # Ghost 0: milliseconds
    except (ValueError, OverflowError, OSError):
        return ""
