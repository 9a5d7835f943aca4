"""Serve the Micropub endpoints: queries, changes, and media."""

from contextlib import ExitStack
from functools import partial
from hashlib import sha256
from itertools import chain
from typing import Any, NoReturn

from flask import Response, render_template
from marshmallow import ValidationError
from werkzeug.exceptions import BadRequest, MethodNotAllowed, NotFound

from blogapi import documents
from blogapi.api.access import SelfGuarded, for_strangers
from blogapi.api.operations import JSON
from blogapi.api.request import Request, current_request
from blogapi.api.responses import json_response, no_content, respond
from blogapi.markdown.dates import rfc3339_of
from blogapi.posts import idempotency, slugs
from blogapi.posts import storage as posts
from blogapi.posts.idempotency import IdempotencyKey
from blogapi.posts.schemas import PostChangeSchema, PostInputSchema
from blogapi.posts.storage import Fields, PostRef, StoredPost
from blogapi.search import index
from blogapi.storage.engine import Transaction
from blogapi.storage.keys import READ_SCOPES, digest_of
from blogapi.storage.models import Author
from blogapi.wings.history import revisions
from blogapi.wings.images import uploads
from blogapi.wings.micropub import entry
from blogapi.wings.micropub.message import Submission, authorize, read, read_form
from blogapi.wings.micropub.queries import MEDIA, MICROPUB, QUERIES, public, ref_of, uploaded, url_of
from blogapi.wings.pages import POLICY

OTHER_METHODS = ["PUT", "PATCH", "DELETE", "OPTIONS"]
ACTIONS = ("update", "delete", "undelete")
new_post, change_of_post = PostInputSchema(), PostChangeSchema(partial=True)
# status of an error in /v1 -> status and error code in Micropub. A missing post is an invalid request.
ERRORS = {401: (401, "unauthorized"), 403: (401, "insufficient_scope"), 404: (400, "invalid_request")}
ERRORS |= {429: (429, "too_many_requests"), 500: (500, "server_error"), 503: (503, "temporarily_unavailable")}

views = SelfGuarded("micropub", __name__, template_folder="templates")


@views.after_request
def finish(response: Response) -> Response:
    """Convert an error to the format that the Recommendation requires (3.7.2)."""
    status = response.status_code
    if status >= 400 and response.mimetype == JSON:
        response.status_code, word = ERRORS.get(status, (status, "invalid_request"))
        if response.status_code == 401:
            response.headers["WWW-Authenticate"] = "Bearer"
        response.set_data(f"{documents.dump({'error': word, 'error_description': response.get_json()['message']})}\n")
    return response


# Queries


@views.get(MICROPUB, strict_slashes=False)
def answer_query() -> Response:
    """Return the result of a query. If there is neither a query nor a key, as in a browser, return a page."""
    request = current_request()
    asked = request.args.get("q")
    if asked is None and "HTTP_AUTHORIZATION" not in request.environ:
        return show_endpoint(request)
    authorize(request)
    if asked not in QUERIES:
        raise BadRequest(f"q: must be one of {', '.join(QUERIES)}")
    return json_response(request, QUERIES[asked](request))


def show_endpoint(request: Request) -> Response:
    """Show a page with the URL to enter in a writing program. Programs can also discover it from the page's links."""
    page = render_template("micropub.html", endpoint=public(request, MICROPUB))
    headers = [("Link", f'<{public(request, MICROPUB)}>; rel="micropub"'), ("Content-Security-Policy", POLICY)]
    return respond(request, page.encode(), "text/html; charset=utf-8", headers=headers)


@for_strangers
def refuse_xml_rpc() -> Response:
    """Return an error that recommends Micropub to programs that use WordPress's XML-RPC interface."""
    endpoint = public(current_request(), MICROPUB)
    raise NotFound(f"XML-RPC is not supported; choose Micropub in the program, with the URL {endpoint}")


# Added outside the blueprint, because the blueprint's errors have a different format.
views.record(lambda state: state.app.add_url_rule("/xmlrpc.php", view_func=refuse_xml_rpc, methods=["GET", "POST"]))


# Changes


@views.post(MICROPUB, strict_slashes=False)
def change_post() -> Response:
    """Create, update, delete or restore a post."""
    request = current_request()
    with ExitStack() as opened, entry.property_names():
        message = read(request, opened)
        if not message.action:
            convert(request, message.properties)
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
        parts = entry.update_of(message.body)
        convert(request, parts.replaced)
        convert(request, parts.added)
        old, new = request.database.write(update, ref, parts, request.author)
    return changed_response(request, old, new, ignored=entry.ignored(chain(*parts)))


def convert(request: Request, properties: dict[str, list[Any]]) -> None:
    """Convert HTML content to Markdown (in a thread), and the time in `published` to RFC 3339."""
    if any(isinstance(value, dict) for value in properties.get("content", ())):
        value = entry.single(properties, "content")
        content, dropped = request.database.compute_in_thread(request.client, partial(entry.as_markdown, value))
        properties["content"] = [content]
        properties.update({f"content.html: {name}": ["dropped"] for name in sorted(dropped)})  # reports them as ignored
    if "published" in properties:
        time = entry.text(entry.single(properties, "published"), "published")
        try:
            properties["published"] = [rfc3339_of(time, request.service.config.timezone)]
        except ValueError as error:
            raise ValidationError(str(error), "published") from None


def created_response(request: Request, url: str, **more: Any) -> Response:
    return json_response(request, {"url": url} | more, 201, [("Location", url)])


def changed_response(request: Request, old: Fields, new: Fields, **more: Any) -> Response:
    """Return the post's URL if the change altered it, and a 204 otherwise."""
    url = url_of(request, new)
    return created_response(request, url, **more) if url != url_of(request, old) else no_content(request)


def create(request: Request, message: Submission) -> Response:
    """Check a post and its photos, then store them. If the client repeats the request, store them only once."""
    if message.type not in ("", "h-entry"):
        raise BadRequest("h: must be entry, or left out")
    entry.refuse(message.properties)
    others = entry.ignored(message.properties)
    files = [file for file in message.files if file.field in ("photo", "file")]
    others += [file.field for file in message.files if file not in files]
    now = request.database.now
    images = [uploads.identify(request, file) for file in files]
    urls = [public(request, image.path) for image, _ in images]
    fields = new_post.load(entry.post_of(message, urls, now, "draft" if request.author.drafts_only else "published"))
    index.prepare(request.database, fields["content"])
    for image, kept in images:
        uploads.store_image(request, image, kept)
    # The idempotency key is derived from this, because the body of a form contains a random boundary.
    content = documents.dump([message.properties, [image.id for image, _ in images]])
    key = given_or_derived_key(request, content.encode(errors="surrogatepass"))
    post = request.database.write(idempotency.add_once, fields, request.author, key, add)
    return created_response(request, url_of(request, documents.load(post.document)), ignored=others)


def given_or_derived_key(request: Request, content: bytes) -> IdempotencyKey:
    """Return a request's Idempotency-Key, or a key derived from its content. Raises ValidationError."""
    given, digest = idempotency.key_of(request), sha256(content)
    if given:
        return given._replace(request=digest.digest())
    # The leading space prevents a clash with keys that clients send.
    return IdempotencyKey(digest_of(request.author.name), f" {digest.hexdigest()}", digest.digest(), is_derived=True)


def add(tx: Transaction, fields: Fields, author: Author) -> StoredPost:
    """Create a post. If its slug is taken, append a number to it."""
    slug = {"slug": slugs.find_free(tx, fields["slug"])} if "slug" in fields else {}
    return posts.add(tx, fields | slug, author, allow_future_draft=True)


def update(tx: Transaction, ref: PostRef, parts: entry.Update, author: Author) -> tuple[Fields, Fields]:
    """Update a post in one revision. Return the post before and after the update."""
    old = documents.load(posts.get_to_change(tx, ref).document)
    changes = change_of_post.load(entry.changes_of(parts, old, tx.now))
    if documents.in_order(old | changes) == old:
        return old, old
    return old, documents.load(posts.change(tx, ref, changes, author, allow_future_draft=True).document)


def undelete(request: Request, ref: PostRef) -> Response:
    if isinstance(ref, str):
        ref = request.database.read_in_thread(request.client, revisions.get_deleted_id, ref)
    old = documents.load(revisions.get_in_trash(request.database, ref))
    new = documents.load(request.database.write(revisions.restore_deleted, ref, request.author).document)
    return changed_response(request, old, new)


@views.post(MEDIA)
def upload() -> Response:
    """Store an image from the part named `file` or, if there is none, from the first part with a file name."""
    request = current_request()
    with ExitStack() as opened:
        if request.mimetype != uploads.FORM:
            authorize(request)
            raise uploads.Unsupported(f"Content-Type: must be {uploads.FORM}", "Accept", uploads.FORM)
        _, files = read_form(request, opened)
        chosen = [file for file in files if file.field == "file"] or files
        if not chosen:
            raise ValidationError("missing; the form must have a part with this name", "file")
        image, _ = uploads.store_file(request, chosen[0])
    return created_response(request, public(request, image.path))


@views.get(MEDIA)
def answer_media_query() -> Response:
    """List images, or return the URL of the newest image."""
    request = current_request()
    authorize(request, scopes=READ_SCOPES)
    if request.args.get("q") not in ("source", "last"):
        raise BadRequest("q: must be source or last")
    return json_response(request, uploaded(request))


@views.route(MICROPUB, methods=OTHER_METHODS, strict_slashes=False)
@views.route(MEDIA, methods=OTHER_METHODS)
def refuse_method() -> NoReturn:
    """Refuse all other methods, or return 401 if the request has no key."""
    authorize(current_request())
    raise MethodNotAllowed(["GET", "HEAD", "POST"])
