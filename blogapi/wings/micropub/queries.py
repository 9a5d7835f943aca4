"""Answer Micropub's queries for the configuration, tags, posts (as entries) and images, and find posts by URL."""

import re
from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields
from werkzeug.exceptions import BadRequest

from blogapi import documents
from blogapi.api.request import Request, load_query
from blogapi.api.schemas import Names, matching, page_size, parameters, parse_id, parsed_by
from blogapi.paging import Cursor, ListQuery, Page
from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.posts.storage import Fields, PostRef
from blogapi.storage.engine import Reader
from blogapi.storage.models import MAX_ID, Post
from blogapi.text import fold
from blogapi.wings.images import storage as images
from blogapi.wings.micropub import entry
from blogapi.wings.tags import storage as tags

MICROPUB, MEDIA = "/micropub", "/micropub/media"
NO_TARGETS: Fields = {"syndicate-to": []}
POST_TYPES = [{"type": kind.lower(), "name": kind} for kind in ("Note", "Article", "Photo")]
MAX_TAGS = 1000
MAX_OFFSET = 10_000  # posts or tags


def public(request: Request, path: str) -> str:
    """Return the public URL of a path of this service."""
    return request.service.config.base_url + path


def url_of(request: Request, post: Fields) -> str:
    """Return the URL of a post on the site or, if the site's URL is unknown, in the API."""
    return request.service.config.url_on_site(post) or public(request, f"/v1/posts/{post['id']}")


def ref_of(request: Request, url: Any) -> PostRef:
    """Return the id or slug in a post's URL, on the site or in the API. Raises BadRequest."""
    path = re.sub(r"[?#].*", "", url if isinstance(url, str) else "", flags=re.DOTALL).rstrip("/")
    own = public(request, "/v1/posts/")
    for template in (request.service.config.post_url, f"{own}{{id}}", f"{own}by-slug/{{slug}}"):
        pattern = re.escape(template.rstrip("/")).replace(r"\{slug\}", "(?P<slug>[a-z0-9-]{1,100})")
        match = template and re.fullmatch(pattern.replace(r"\{id\}", "(?P<id>[1-9][0-9]{0,17})"), path)
        if match:
            return int(match["id"]) if "id" in match.groupdict() else match["slug"]
    raise BadRequest("url: must be the URL of a post")


def parse_offset(text: str) -> int:
    if re.fullmatch("0|[1-9][0-9]{0,5}", text) and int(text) <= MAX_OFFSET:
        return int(text)
    raise ValidationError(f"must be a whole number from 0 to {MAX_OFFSET:,}; use `after` for more")


def parse_status(text: str) -> str:
    status = entry.status_of(text)
    if status not in documents.STATUSES:
        raise ValidationError(f"must be one of {', '.join(documents.STATUSES)}")
    return status


common_params: dict[str, fields.Field] = {"q": fields.String(), "offset": parsed_by(parse_offset, "")}
post_params: dict[str, fields.Field] = {"post-status": parsed_by(parse_status, ""), **common_params}
plain_query = parameters(q=fields.String())
source_query = parameters(
    url=fields.String(),
    properties=Names(fields.String(), post_load=lambda text: text.split(",")),
    limit=page_size("posts"),
    after=parsed_by(parse_id, ""),
    **post_params,
)
category_query = parameters(
    filter=parsed_by(fold, ""), limit=page_size("tags", MAX_TAGS), after=parsed_by(fold, ""), **common_params
)
media_query = parameters(
    limit=page_size("images"), after=matching(images.IMAGE_ID, 32, 32, "", required=False), **common_params
)


def config_of(request: Request) -> Fields:
    """Return what the endpoint supports, or only the list of sites to syndicate posts to, which is empty."""
    config = {"media-endpoint": public(request, MEDIA), "q": [*QUERIES], "post-types": POST_TYPES} | NO_TARGETS
    return NO_TARGETS if query_of(request, plain_query)["q"] == "syndicate-to" else config


def query_of(request: Request, schema: Schema) -> Mapping[str, Any]:
    """Load the query without empty values and server commands (`mp-…`). Raises ValidationError for anything unknown."""
    pairs = request.environ.get("QUERY_STRING", "").split("&")
    return load_query(schema, "&".join(pair for pair in pairs if not re.match("mp-|[^=]*=?$", pair)))


def categories(request: Request) -> Fields:
    """Return a page of tags, or of the tags that contain the string `filter`."""
    query, status = query_of(request, category_query), "published" if request.published_only else None
    start = query.get("offset", 0)
    end = start + query["limit"]
    first = query.get("filter", ""), status, query.get("after", ""), end + 1
    names = request.database.read_in_thread(request.client, tags_with, *first)
    paging = {"paging": {"after": fold(names[end - 1])}} if len(names) > end else {}
    return {"categories": names[start:end]} | paging


def tags_with(reader: Reader, text: str, status: str | None, after: str | None, count: int) -> list[str]:
    """Return up to `count` tags after `after` whose folded name contains `text`. The query may read all tags."""
    names: list[str] = []
    while after is not None and len(names) < count:
        page = tags.page(reader, MAX_TAGS, after, status)
        names += [tag.name for tag in page.items if text in fold(tag.name)]
        after = page.next
    return names[:count]


def source(request: Request) -> Fields:
    """Return the post at `url`, or a page of posts, as entries. If `properties` are requested, return only these."""
    query = query_of(request, source_query)
    names = query.get("properties")

    def as_entry(document: bytes) -> Fields:
        post = documents.load(document)
        properties = entry.properties_of(post, url_of(request, post))
        if names:
            return {"properties": {name: properties[name] for name in names if name in properties}}
        return {"type": ["h-entry"], "properties": properties}

    if "url" in query:
        return as_entry(posts.get(request.database, ref_of(request, query["url"]), request.published_only))
    page = list_for_key(request, query)
    paging = {"paging": {"after": str(page.next)}} if page.next is not None else {}
    return {"items": [as_entry(post) for post in page.items]} | paging


def list_for_key(request: Request, query: Mapping[str, Any]) -> Page[bytes, Any]:
    """Return a page of posts that the key may read."""
    status, before = query.get("post-status"), query.get("after", MAX_ID)
    if request.published_only and status not in (None, "published"):
        return Page([], None)
    status = "published" if request.published_only else status
    if offset := query.get("offset"):
        before = request.database.read_in_thread(request.client, last_of, status, before, offset)
    return lists.page(request.database, ListQuery(query["limit"], status, before=before))


def last_of(reader: Reader, status: str | None, before: int, count: int) -> int:
    """Return the id of the `count`-th post before the id `before`, newest first, or 0 if there are fewer posts."""
    query = Post.select(Post.id).where(Post.id < before).order_by(Post.id.desc()).limit(1).offset(count - 1)
    row = reader.row(query.where(Post.status == status) if status else query)
    return row[0] if row else 0


def uploaded(request: Request) -> Fields:
    """Return a page of images, newest first, or the URL of the newest image if the query is `q=last`."""
    query = query_of(request, media_query)
    start, is_last = query.get("offset", 0), query["q"] == "last"
    before = Cursor("", query["after"]) if "after" in query else None
    end = 1 if is_last else start + query["limit"]
    page = request.database.read_in_thread(request.client, images.page, end, before)
    items = [{"url": public(request, image.path), "published": image.created_at} for image in page.items]
    if is_last:
        return {"url": items[0]["url"]} if items else {}
    return {"items": items[start:]} | ({"paging": {"after": page.next.id}} if page.next else {})


QUERIES = {"config": config_of, "source": source, "syndicate-to": config_of, "category": categories}
