"""The views of the owner's page for sessions, keys and webhooks."""

import re
from collections.abc import Callable
from typing import Any

from flask import Response, g, redirect, render_template, request
from marshmallow import ValidationError

from blogapi.storage import keys, webhooks
from blogapi.storage.models import EVENTS, SCOPES
from blogapi.web.owner.blueprint import address, blueprint, cookie_name, done, set_cookie
from blogapi.web.owner.forms import shows_errors
from blogapi.web.schemas.webhooks import WebhookInputSchema
from blogapi.web.service import database, service
from blogapi.web.views.pages import STATIC, page
from blogapi.web.views.webhooks import check_address

KEYS, DELIVERIES = 100, 10  # shown at once
new_webhook = WebhookInputSchema()


@blueprint.get("/owner.css")
@blueprint.get("/owner.js")
def send_file() -> Response:
    """Send a static file of the page; it needs no session."""
    return page(request, STATIC / request.path.rpartition("/")[2])


@blueprint.get("/open")
def offer_session() -> str:
    """Ask before a link is used up: mail programs and the like fetch links before people do."""
    link = request.args.get("link", "")
    keys.check_link(database(), link)
    return render_template("owner/open.html", link=link)


@blueprint.post("/open")
def open_session() -> Response:
    """Open a session by a link. Its cookie is SameSite=Strict, which is why the link itself shows a form.

    The link is checked before the write: anybody can send this form, and writers would wait for it.
    """
    link = g.form.get("link", "")
    keys.check_link(database(), link)
    token = database().write(keys.open_session, link)
    response = redirect(address(), 303)
    set_cookie(response, cookie_name(), token, keys.PERIODS[keys.SESSION].total_seconds())
    return response


@blueprint.post("/end")
def end_session() -> Response:
    """End the session."""
    database().write(keys.end_session, g.session)
    return redirect(address(), 303)


# Keys


@blueprint.get("/keys")
def show_keys(**shown: Any) -> str:
    """Show the keys, and a form for another one."""
    found = keys.page(database(), KEYS + 1, request.args.get("after", ""))
    config, limiter = service().config, service().limiter
    rows = [(key, limiter.peek(digest, keys.counted(database(), digest))) for digest, key in found[:KEYS]]
    last = rows[-1][0].name if len(found) > KEYS else None
    return render_template("owner/keys.html", keys=rows, last=last, scopes=SCOPES, url=config.url, **shown)


@blueprint.post("/keys/create")
@shows_errors(show_keys)
def create_key() -> Response:
    """Create a key."""
    name, key, scope = g.form.get("name", "").strip(), keys.new_key(), g.form.get("scope")
    if scope not in SCOPES:
        raise ValidationError(f"must be one of {', '.join(SCOPES)}", "scope")
    database().write(keys.add, name, key, scope)
    return done("/keys", "It is shown only once.", name, key=key)


@blueprint.post("/keys/regenerate")
def regenerate_key() -> Response:
    """Replace a key by a new one."""
    name, key = g.form.get("name", ""), keys.new_key()
    database().write(keys.replace, name, key)
    return done("/keys", "The old key no longer works. The new one is shown only once.", name, key=key)


# Webhooks


@blueprint.get("/webhooks")
def show_webhooks(**shown: Any) -> str:
    """Show the webhooks with their latest deliveries, and a form for another one."""
    known = webhooks.listing(database())
    rows = [(webhook, webhooks.deliveries(database(), webhook.id, DELIVERIES)) for webhook in known]
    events = [event for event in EVENTS if event != "ping"]  # A ping is always sent, so it is not offered.
    return render_template("owner/webhooks.html", webhooks=rows, events=events, **shown)


@blueprint.post("/webhooks/create")
@shows_errors(show_webhooks)
def create_webhook() -> Response:
    """Create a webhook."""
    fields = new_webhook.load({"url": g.form.get("url", "").strip(), "events": g.form.getlist("events")})
    check_address(service(), fields["url"])
    webhook, secret = database().write(webhooks.add, **fields)
    return done("/webhooks", "It is shown only once.", without_password(webhook.url), secret=secret)


@blueprint.app_template_filter()
def without_password(url: str) -> str:
    """Return a URL to show, without the user and the password in it."""
    return re.sub("(?<=://)[^/?#]*@", "…@", url, count=1)


def change(rule: str, text: str, operation: Callable, *fields: str, in_thread: bool = False, **fixed: Any) -> None:
    """Add a view that does one operation of the storage.

    Its arguments are those of the path, `fields` of the form, and `fixed`.
    """
    _, section, *_, word = rule.split("/")

    def view(**arguments: Any) -> Response:
        write = database().write_in_thread if in_thread else database().write
        write(operation, **arguments, **{name: g.form.get(name, "") for name in fields}, **fixed)
        return done(f"/{section}", text, g.form.get("name", ""))

    blueprint.add_url_rule(rule, f"{section} {word}", view, methods=["POST"])


change("/keys/revoke", "was revoked.", keys.remove, "name")
change("/webhooks/<id:webhook_id>/ping", "A ping is on its way.", webhooks.ping)
change("/webhooks/<id:webhook_id>/turn-on", "The webhook is on.", webhooks.change, changes={"active": True})
change("/webhooks/<id:webhook_id>/turn-off", "The webhook is off.", webhooks.change, changes={"active": False})
change("/webhooks/<id:webhook_id>/delete", "The webhook was deleted.", webhooks.remove, in_thread=True)
change("/webhooks/<id:webhook_id>/<delivery_id:message_id>/resend", "It is on its way again.", webhooks.redeliver)
