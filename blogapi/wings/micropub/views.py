"""The views of Micropub: queries, creations, changes, deletions, and the media endpoint."""

import re
from contextlib import ExitStack
from functools import partial
from typing import Any

from flask import Blueprint, Response, render_template
from marshmallow import ValidationError
from werkzeug.exceptions import BadRequest, MethodNotAllowed

from blogapi import documents
from blogapi.api.request import JSON, Request, current_request
from blogapi.api.responses import json_response, no_content, respond
from blogapi.api.schemas import page_size, parameters, parse_id, parsed
from blogapi.api.views import Views
from blogapi.posts import lists, slugs
from blogapi.posts import storage as posts
from blogapi.posts.schemas import PostChangeSchema, PutPostSchema
from blogapi.posts.storage import Fields, PostRef, StoredPost
from blogapi.storage.engine import Reader, Transaction
from blogapi.text import fold
from blogapi.wings.history import revisions
from blogapi.wings.images import uploads
from blogapi.wings.micropub import entry
from blogapi.wings.micropub.message import Message, authorize, read, read_form
from blogapi.wings.pages import POLICY
from blogapi.wings.tags import storage as tags

MICROPUB, MEDIA = "/micropub", "/micropub/media"
OTHERS = ["PUT", "PATCH", "DELETE", "OPTIONS"]
QUERIES = ("config", "source", "syndicate-to", "category")
ACTIONS = ("update", "delete", "undelete")
POST_TYPES = [{"type": kind.lower(), "name": kind} for kind in ("Note", "Article", "Photo")]
MAX_TAGS = 1000
new_post, change_of_post = PutPostSchema(), PostChangeSchema(partial=True)
paging = parameters(limit=page_size("posts"), after=parsed(parse_id, ""))


# Here, a key without the permission gets 401, and a post that is not found is an invalid request.
STATUSES = {403: (401, "insufficient_scope"), 404: (400, "invalid_request")}
WORDS = {401: "unauthorized", 429: "too_many_requests", 500: "server_error", 503: "temporarily_unavailable"}

views = Views()


def register(blueprint: Blueprint) -> None:
    """Add Micropub, whose errors have a form of their own."""
    micropub = Blueprint("micropub", __name__, template_folder="templates")
    micropub.after_request(finish)
    views.register(micropub)
    blueprint.register_blueprint(micropub)


def finish(response: Response) -> Response:
    """Give an error the form that the Recommendation has (3.7.2)."""
    status = response.status_code
    if status >= 400 and response.mimetype == JSON:
        code, word = STATUSES.get(status, (status, WORDS.get(status, "invalid_request")))
        response.status_code = code
        response.set_data(f"{documents.dump({'error': word, 'error_description': response.get_json()['message']})}\n")
    return response


# Addresses


def public(request: Request, path: str) -> str:
    """Return the URL of a path of the service."""
    return request.service.config.base_url + path


def url_of(request: Request, post: Fields) -> str:
    """Return the address of a post: on the site, or else in the API."""
    return request.service.config.url_on_site(post) or public(request, f"/v1/posts/{post['id']}")


def ref_of(request: Request, url: Any) -> PostRef:
    """Return the post to which a URL leads: on the site, or by id or slug in the API. Raises BadRequest."""
    path = re.sub(r"[?#].*", "", url if isinstance(url, str) else "", flags=re.DOTALL).rstrip("/")
    own = public(request, "/v1/posts/")
    for template in (request.service.config.post_url, f"{own}{{id}}", f"{own}by-slug/{{slug}}"):
        pattern = re.escape(template.rstrip("/")).replace(r"\{slug\}", "(?P<slug>[a-z0-9-]{1,100})")
        match = template and re.fullmatch(pattern.replace(r"\{id\}", "(?P<id>[1-9][0-9]{0,17})"), path)
        if match:
            return int(match["id"]) if "id" in match.groupdict() else match["slug"]
    raise BadRequest("url: must be the address of a post")


# Queries


@views.get(MICROPUB)
def answer_query() -> Response:
    """Answer a query; without one, and without a key, show a page for people."""
    request = current_request()
    asked = request.args.get("q")
    if asked is None and "HTTP_AUTHORIZATION" not in request.environ:
        return show_endpoint(request)
    authorize(request)
    if asked not in QUERIES:
        raise BadRequest(f"q: must be one of {', '.join(QUERIES)}")
    return json_response(request, {"category": categories, "source": source}.get(asked, config_of)(request))


def show_endpoint(request: Request) -> Response:
    """Show a page by which programs find the endpoint, so that its own address can be typed into them."""
    page = render_template("micropub.html", endpoint=public(request, MICROPUB))
    headers = [("Link", f'<{public(request, MICROPUB)}>; rel="micropub"'), ("Content-Security-Policy", POLICY)]
    return respond(request, page.encode(), "text/html; charset=utf-8", headers=headers)


def config_of(request: Request) -> Fields:
    """Return the configuration, with an empty list of syndication targets."""
    targets: Fields = {"syndicate-to": []}
    if request.args["q"] == "syndicate-to":
        return targets
    return {"media-endpoint": public(request, MEDIA), "q": QUERIES, "post-types": POST_TYPES} | targets


def categories(request: Request) -> Fields:
    """Return the tags, or those that contain a text."""
    status, wanted = "published" if request.published_only else None, fold(request.args.get("filter", ""))
    return {"categories": request.database.read_in_thread(request.client, tags_with, wanted, status)}


def tags_with(reader: Reader, text: str, status: str | None) -> list[str]:
    """Return the tags whose folded name contains a text, at most MAX_TAGS. It may read all of them."""
    found: list[str] = []
    after: str | None = ""
    while after is not None and len(found) < MAX_TAGS:
        page = tags.page(reader, MAX_TAGS, after, status)
        found += [tag.name for tag in page.items if text in fold(tag.name)]
        after = page.next
    return found[:MAX_TAGS]


def source(request: Request) -> Fields:
    """Return a post as an entry, or some of its properties; without a URL, a page of posts."""
    names = [*request.args.getlist("properties[]"), *request.args.getlist("properties")]

    def as_entry(document: bytes) -> Fields:
        post = documents.load(document)
        properties = entry.properties_of(post, url_of(request, post))
        if names:
            return {"properties": {name: properties[name] for name in names if name in properties}}
        return {"type": ["h-entry"], "properties": properties}

    if "url" in request.args:
        find = posts.find_published if request.published_only else posts.find
        return as_entry(find(request.database, ref_of(request, request.args["url"])))
    query = paging.load({name: request.args[name] for name in ("limit", "after") if name in request.args})
    status = "published" if request.published_only else None
    page = lists.page(request.database, lists.ListQuery(query["limit"], status, before=query.get("after")))
    after = {"paging": {"after": str(page.next)}} if page.next is not None else {}
    return {"items": [as_entry(post) for post in page.items]} | after


# Changes


@views.post(MICROPUB)
def change_post() -> Response:
    """Create, update, delete or restore a post."""
    request = current_request()
    with ExitStack() as opened, entry.property_names():
        message = read(request, opened)
        for properties in (message.properties, *map(message.body.get, ("replace", "add"))):
            convert_content(request, properties)
        if not message.action:
            return create(request, message)
    if message.action not in ACTIONS:
        raise BadRequest(f"action: must be one of {', '.join(ACTIONS)}, or left out to create a post")
    ref = ref_of(request, message.url)
    if message.action == "delete":
        request.database.write(posts.delete, ref, request.author)
        return no_content(request)
    if message.action == "undelete":
        return undelete(request, ref)
    if not message.body:
        raise BadRequest("body: an update must be JSON")
    with entry.property_names():
        old, new = request.database.write(update, ref, message.body, request.author)
    return changed(request, old, new)


def convert_content(request: Request, properties: Any) -> None:
    """Convert the content in HTML, if properties have one, in a thread and outside of a transaction."""
    values = properties.get("content") if isinstance(properties, dict) else None
    if isinstance(values, list) and any(isinstance(value, dict) for value in values):
        value = entry.single(properties, "content")
        properties["content"] = [request.database.in_background(request.client, partial(entry.as_markdown, value))]


def created(request: Request, post: Fields, **more: Any) -> Response:
    """Answer with the address of a post."""
    url = url_of(request, post)
    return json_response(request, {"url": url} | more, 201, [("Location", url)])


def changed(request: Request, old: Fields, new: Fields) -> Response:
    """Answer with the address of a post if it is another one, else with 204."""
    return no_content(request) if url_of(request, old) == url_of(request, new) else created(request, new)


def create(request: Request, message: Message) -> Response:
    """Create a post with its photos. All else is checked before the files are stored."""
    if message.type not in ("", "h-entry"):
        raise BadRequest("h: must be entry, or left out")
    others = entry.ignored(message.properties)
    files = [each for each in message.files if each.part in ("photo", "file")]
    others += [each.part for each in message.files if each not in files]
    now = request.database.now
    images = [uploads.identify(request, each) for each in files]
    fields = new_post.load(entry.post_of(message, [public(request, image.path) for image, _ in images], now))
    for each, (image, kept) in zip(files, images, strict=True):
        uploads.keep(request, each, image, kept)
    post = request.database.write(add, fields, request.author)
    return created(request, documents.load(post.document), ignored=others)


def add(tx: Transaction, fields: Fields, author: str) -> StoredPost:
    """Create a post; its slug gets a number if it is taken."""
    return posts.add(tx, fields | ({"slug": slugs.find_free(tx, fields["slug"])} if "slug" in fields else {}), author)


def update(tx: Transaction, ref: PostRef, body: Fields, author: str) -> tuple[Fields, Fields]:
    """Update a post, with one revision; return it as it was and as it is."""
    old = documents.load(posts.publish_if_due(tx, ref).document)
    changes = change_of_post.load(entry.changes_of(body, old, tx.now))
    if all(value == old.get(name) for name, value in changes.items()):
        return old, old
    return old, documents.load(posts.change(tx, ref, changes, author))


def undelete(request: Request, ref: PostRef) -> Response:
    """Restore a post from the trash."""
    if isinstance(ref, str):
        ref = request.database.read_in_thread(request.client, revisions.find_deleted, ref)
    old = documents.load(revisions.find_in_trash(request.database, ref))
    new = documents.load(request.database.write(revisions.restore_deleted, ref, request.author))
    return changed(request, old, new)


@views.post(MEDIA)
def upload() -> Response:
    """Store an image: the part `file`, or the first that has the name of a file."""
    request = current_request()
    with ExitStack() as opened:
        if request.mimetype != uploads.FORM:
            authorize(request)
            raise uploads.Unsupported(f"Content-Type: must be {uploads.FORM}", "Accept", uploads.FORM)
        _, files = read_form(request, opened)
        found = [each for each in files if each.part == "file"] or files
        if not found:
            raise ValidationError("missing; the form must have a part of this name", "file")
        image, _ = uploads.store_file(request, found[0])
    url = public(request, image.path)
    return json_response(request, {"url": url}, 201, [("Location", url)])


@views.route(MICROPUB, *OTHERS)
@views.route(MEDIA, "GET", *OTHERS)
def refuse_method() -> None:
    """Answer all other methods, with a key."""
    request = current_request()
    authorize(request)
    raise MethodNotAllowed(["POST"] if request.path == MEDIA else ["GET", "HEAD", "POST"])
