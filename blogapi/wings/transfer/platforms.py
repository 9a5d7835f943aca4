"""Read the posts in Ghost exports (JSON), and in Medium and Substack exports (folders of HTML files)."""

import csv
import re
from collections.abc import Iterator
from functools import partial
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from turbohtml import Element, parse

from blogapi.clock import rfc3339
from blogapi.markdown.dates import rfc3339_or_empty
from blogapi.markdown.files import MAX_FILE_BYTES
from blogapi.markdown.front_matter import MarkdownError
from blogapi.markdown.html import check_size
from blogapi.posts.slugs import slug_of
from blogapi.wings.transfer.feeds import read_json_feed
from blogapi.wings.transfer.folder import load_json, open_below, real_folders
from blogapi.wings.transfer.items import ExportedPost, LeftOut

MAX_EXPORT_BYTES = 128 * 1024 * 1024  # maximum size of a Ghost export, which is parsed as a whole
SITE = "__GHOST_URL__"  # Ghost's placeholder for the site's URL
COVER_NAMES = ("feature_image_alt", "feature_image_caption")
# Values that only a site's templates use
TEMPLATE_NAMES = ("canonical_url", "meta_title", "meta_description", "visibility", *COVER_NAMES)
# How text begins in Ghost's formats other than HTML
TEXT_STARTS = {"lexical": r'"text":"[^"]', "mobiledoc": r'\[0,\[[\d,]*\],\d+,"[^"]'}

Row = dict[str, Any]
Names = dict[Any, list[str]]  # post id -> names of its tags or authors


def read_ghost(path: Path) -> Iterator[ExportedPost | LeftOut]:
    """Yield the posts in a Ghost export or a JSON Feed. Raises MarkdownError."""
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
        raise MarkdownError("not an export from Ghost") from None
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
        post.error = "its fields are missing or invalid"
    return post


def _tags(data: Row) -> Names:
    """Return the names of each post's tags, without Ghost's internal tags."""
    names = {tag["id"]: tag["name"] for tag in data.get("tags", []) if tag.get("visibility") != "internal"}
    return _names_of_posts(names, "tag_id", data.get("posts_tags", []))


def _authors(data: Row) -> Names:
    """Return the names of each post's authors. In Ghost 1, a post has a single `author_id`."""
    names = {user["id"]: user.get("name") for user in data.get("users", [])}
    own = [{"post_id": row.get("id"), "author_id": row.get("author_id"), "sort_order": inf} for row in data["posts"]]
    return _names_of_posts(names, "author_id", [*data.get("posts_authors", []), *own])


def _names_of_posts(names: dict[Any, str], key: str, links: list[Row]) -> Names:
    """Return the names linked to each post, by `sort_order`."""
    names_of_posts: Names = {}
    for link in sorted(links, key=lambda link: link.get("sort_order") or 0):
        of_post = names_of_posts.setdefault(link["post_id"], [])
        if (name := names.get(link[key])) and name not in of_post:
            of_post.append(name)
    return names_of_posts


def _params(row: Row, authors: list[str]) -> dict[str, Any]:
    featured = {"featured": bool(row["featured"])} if row.get("featured") is not None else {}
    return {"authors": authors} | {name: (row.get(name) or "").replace(SITE, "") for name in TEMPLATE_NAMES} | featured


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
    """Return the Markdown of a Ghost 1 or 2 post, from the cards in its mobiledoc JSON."""
    cards = load_json(mobiledoc or "{}").get("cards", [])
    texts = [card[1].get("markdown", "") for card in cards if card[0] in ("card-markdown", "markdown")]
    return "\n\n".join(filter(None, texts))


def _time(value: Any) -> str:
    if not isinstance(value, int):
        return rfc3339_or_empty(value or "")
    try:
        return rfc3339(value / 1000)  # Ghost 0 wrote milliseconds
    except (ValueError, OverflowError, OSError):
        return ""


MEDIUM_FILE = re.compile(r"(draft|\d{4}-\d\d-\d\d)_(.*)-([0-9a-f]{8,12}|-+[0-9a-f]{8,12})\.html", re.DOTALL)


def read_medium(path: Path) -> Iterator[ExportedPost]:
    """Yield the post in a file of a Medium export. Raises MarkdownError."""
    match = MEDIUM_FILE.fullmatch(path.name)
    with path.open("rb") as file:
        html = file.read(MAX_FILE_BYTES).decode(errors="replace")
    check_size(html)
    entry = parse(html).select_one(".h-entry")
    body = entry.select_one(".e-content") if entry else None
    if not match or not entry or not body:
        raise MarkdownError("not an export from Medium")
    yield _medium_post(match, entry, body)


def _medium_post(match: re.Match[str], entry: Element, body: Element) -> ExportedPost:
    title = _text(entry.select_one(".p-name")) or match[2].strip("-")
    heading, values = body.select_one("h1, h2, h3, h4"), {}
    if heading and _text(heading) == title:  # Medium repeats the title in the text.
        heading.decompose()
    elif _text(body).startswith(title.rstrip("…")):  # The title of a response is the beginning of its text.
        values = {"status": "response"}
    time, link = entry.select_one("time.dt-published"), entry.select_one("a.p-canonical")
    date_text = time.attr("datetime") or "" if time else ""
    url = link.attr("href") or "" if link else ""
    fields = {
        "slug": slug_of(title),
        "title": title,
        "status": "draft" if match[1] == "draft" else "published",
        "published_at": rfc3339_or_empty(date_text),
        "excerpt": _text(entry.select_one(".p-summary")),
        "html": body.inner_html,
        "params": {"author": _text(entry.select_one(".p-author")), "canonical_url": url},
    }
    return ExportedPost(match[3], fields, date_text=date_text, paths=(urlsplit(url).path,), values=values)


def _text(element: Element | None) -> str:
    return " ".join(element.text.split()) if element else ""


def read_substack(path: Path) -> Iterator[ExportedPost | LeftOut]:
    """Yield the posts in a Substack export. Raises MarkdownError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, restval="")
            if not {*(rows.fieldnames or ())} >= {"post_id", "post_date", "is_published", "title"}:
                raise MarkdownError("not an export from Substack")
            yield from map(partial(_substack_post, path.parent), rows)
    except (csv.Error, UnicodeDecodeError) as error:
        raise MarkdownError(f"not valid CSV: {error}") from None


def _substack_post(folder: Path, row: dict[str, str]) -> ExportedPost | LeftOut:
    number, _, slug = row["post_id"].partition(".")
    status, when = "published" if row["is_published"].lower() == "true" else "draft", rfc3339_or_empty(row["post_date"])
    fields = {"slug": slug, "title": row["title"], "status": status, "published_at": when}
    fields |= {"excerpt": row.get("subtitle", "")}
    path = folder / "posts" / f"{row['post_id']}.html"
    post = ExportedPost(number, fields, paths=(f"/p/{slug}",) if slug else (), file=str(path))
    post.date_text = row["post_date"]
    post.values = {"audience": row.get("audience", ""), "status": status}
    try:
        with open_below(path, real_folders([folder])) as file:
            post.fields["html"] = file.read(MAX_FILE_BYTES).decode()
    except FileNotFoundError:
        if status == "draft":
            return LeftOut("draft without text")
        post.error = "its HTML file is missing"
    except (OSError, ValueError):
        post.error = "its HTML file cannot be read"
    post.fields["params"] = {name: row.get(name, "") for name in ("type", "podcast_url")}
    return post
