"""The views of the owner's page: opening it, and what it shows and changes of keys, webhooks and posts."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from flask import Response, g, redirect, render_template, request
from werkzeug.exceptions import BadRequest

from blogapi.storage import documents, keys, pages, posts, webhooks
from blogapi.storage.models import EVENTS, SCOPES
from blogapi.web.owner.blueprint import blueprint, cookie_name, notices
from blogapi.web.schemas.posts import ListQuerySchema
from blogapi.web.schemas.webhooks import WebhookInputSchema
from blogapi.web.service import database, service
from blogapi.web.views.pages import STATIC, page
from blogapi.web.views.posts import find_page
from blogapi.web.views.webhooks import check_address

KEYS, POSTS, DELIVERIES = 100, 10, 10  # that are shown at once
new_webhook = WebhookInputSchema()
posts_query = ListQuerySchema(only=("status", "before", "q"))


@blueprint.get("/owner.css")
@blueprint.get("/owner.js")
def send_file() -> Response:
    """Send a file of the page, which anybody may have."""
    return page(request, STATIC / request.path.rpartition("/")[2])


@blueprint.get("/open")
def offer_session() -> str:
    """Ask before a link is used up, or a program that looks at it beforehand would do that."""
    link = request.args.get("link", "")
    keys.check_link(database(), link)
    return render_template("owner/open.html", link=link)


@blueprint.post("/open")
def open_session() -> Response:
    """Open a session by a link; its cookie is strict, and sent on from here because a form of ours led here."""
    token, name = database().write(keys.open_session, g.form.get("link", "")), cookie_name()
    response, period = redirect("/settings", 303), keys.PERIODS[keys.SESSION]
    secure = name.startswith("__Secure-")
    response.set_cookie(name, token, period, path="/settings", secure=secure, httponly=True, samesite="Strict")
    return response


@blueprint.post("/end")
def end_session() -> Response:
    """End the session."""
    database().write(keys.end_session, g.session)
    return redirect("/settings", 303)


@blueprint.get("")
@blueprint.get("/keys")
def show_keys(**made: str) -> str:
    """Show the keys, and one that was just made."""
    found = keys.page(database(), KEYS + 1, request.args.get("after", ""))
    config, limiter = service().config, service().limiter
    shown = [(key, limiter.peek(digest, keys.counted(database(), digest))) for digest, key in found[:KEYS]]
    last = shown[-1][0].name if len(found) > KEYS else None
    return render_template("owner/keys.html", keys=shown, last=last, scopes=SCOPES, url=config.url, **made)


@blueprint.post("/keys/create")
def create_key() -> str:
    """Make a key."""
    name, key, scope = g.form.get("name", "").strip(), keys.new_key(), g.form.get("scope")
    if scope not in SCOPES:
        raise BadRequest(f"scope: must be one of {', '.join(SCOPES)}")
    database().write(keys.add, name, key, scope)
    return show_keys(new_name=name, new_key=key)


@blueprint.post("/keys/regenerate")
def regenerate_key() -> str:
    """Replace a key by a new one."""
    name, key = g.form.get("name", ""), keys.new_key()
    database().write(keys.replace, name, key)
    return show_keys(new_name=name, new_key=key)


@blueprint.get("/webhooks")
def show_webhooks(**made: str) -> str:
    """Show the webhooks with their latest deliveries, and the secret of one that was just made."""
    latest = webhooks.latest_deliveries(database(), DELIVERIES)
    shown = [(webhook, latest[webhook.id]) for webhook in webhooks.listing(database())]
    return render_template("owner/webhooks.html", webhooks=shown, events=EVENTS, **made)


@blueprint.post("/webhooks/create")
def create_webhook() -> str:
    """Create a webhook."""
    fields = new_webhook.load({"url": g.form.get("url", "").strip(), "events": g.form.getlist("events")})
    check_address(service(), fields["url"])
    webhook, secret = database().write(webhooks.add, **fields)
    return show_webhooks(new_url=webhook.url, secret=secret)


@blueprint.get("/posts")
def show_posts() -> str:
    """Show how many posts have each status, and the newest posts."""
    asked = {name: value for name, value in request.args.items() if value and name != "done"}
    page = find_page(database(), posts_query.load(asked) | {"limit": POSTS}, client="owner")
    shown, older = list(documents.load_all(page.documents)), page.before and urlencode(asked | {"before": page.before})
    counts, most = pages.counts(database()), pages.MAX_COUNTED
    return render_template("owner/posts.html", posts=shown, older=older, counts=counts, most=most)


def change(rule: str, notice: str, operation: Callable, *fields: str, in_thread: bool = False, **fixed: Any) -> None:
    """Make an operation of the storage a view: the path names arguments of it, so do `fields` of the form."""
    _, section, *_, word = rule.split("/")
    notices[word] = notice

    def view(**arguments: int | str) -> Response:
        write = database().write_in_thread if in_thread else database().write
        write(operation, **arguments, **{name: g.form.get(name, "") for name in fields}, **fixed)
        return redirect(f"/settings/{section}?{urlencode(request.args.to_dict() | {'done': word})}", 303)

    blueprint.add_url_rule(rule, f"{section} {word}", view, methods=["POST"])


def anyhow(document: bytes | None) -> None:
    """Demand nothing of a post."""


change("/keys/revoke", "The key is revoked.", keys.remove, "name")
change("/webhooks/<id:webhook_id>/ping", "A ping is on its way.", webhooks.ping)
change("/webhooks/<id:webhook_id>/turn-on", "The webhook is on.", webhooks.change, changes={"active": True})
change("/webhooks/<id:webhook_id>/turn-off", "The webhook is off.", webhooks.change, changes={"active": False})
change("/webhooks/<id:webhook_id>/delete", "It is deleted.", webhooks.remove, in_thread=True)
change("/webhooks/<id:webhook_id>/<delivery_id:message_id>/resend", "It is on its way again.", webhooks.redeliver)
change("/posts/<id:ref>/publish", "The post is published.", posts.change, changes={"status": "published"}, check=anyhow)
change("/posts/<id:ref>/unpublish", "The post is a draft.", posts.change, changes={"status": "draft"}, check=anyhow)
change("/posts/<id:ref>/delete", "It is deleted.", posts.delete, check=anyhow)
