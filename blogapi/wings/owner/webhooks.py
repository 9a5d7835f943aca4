"""The views of the owner's page for webhooks."""

import re
from typing import Any

from flask import Blueprint, Response, g, render_template
from marshmallow import ValidationError
from werkzeug.datastructures import MultiDict

from blogapi.api.request import request
from blogapi.wings.owner import once
from blogapi.wings.owner.frame import done, form_secret, shows_errors
from blogapi.wings.owner.views import add_action
from blogapi.wings.webhooks import storage as webhooks
from blogapi.wings.webhooks.storage import DEFAULT_EVENTS, EVENTS
from blogapi.wings.webhooks.views import WebhookChangeSchema, WebhookInputSchema, check_address

SHOWN_DELIVERIES = 10  # of each webhook
new_webhook, change_of_webhook = WebhookInputSchema(), WebhookChangeSchema(partial=True)
PRESETS = {
    "rebuild": [webhooks.SITE_CHANGED],
    "published": ["post.published"],
    "everything": [event for event in DEFAULT_EVENTS if event != "ping"],  # A ping is always sent.
}
# Values of the form for common site hosts
REBUILD = {"preset": "rebuild", "after_seconds": "60"}
HOSTS = {
    "Netlify": REBUILD | {"url": "https://api.netlify.com/build_hooks/…"},
    "Vercel": REBUILD | {"url": "https://api.vercel.com/v1/integrations/deploy/…"},
    "Cloudflare Pages": REBUILD | {"url": "https://api.cloudflare.com/client/v4/pages/webhooks/deploy_hooks/…"},
    "GitHub workflow": REBUILD
    | {
        "url": "https://api.github.com/repos/OWNER/REPOSITORY/dispatches",
        "body": webhooks.DISPATCH_BODY,
        "headers": "Authorization: Bearer TOKEN",
    },
}
PLACEHOLDER = re.compile("…(?!@)|OWNER(?=/)|REPOSITORY(?=/)|(?<=Bearer )TOKEN")
NO_CHECK = "It is shown only once. This host does not check it: you need not keep it."
views = Blueprint("webhooks", __name__)


@views.get("/webhooks")
def show_webhooks(**shown: Any) -> str:
    """Show the webhooks with their latest deliveries, and a form for another one, which `for` in the query fills in."""
    known = webhooks.listing(request.database)
    read = (webhooks.deliveries, webhooks.subjects)
    rows = [
        (webhook, *(listing(request.database, webhook.id, SHOWN_DELIVERIES) for listing in read)) for webhook in known
    ]
    if not g.form:
        shown["typed"] = MultiDict(HOSTS.get(request.args.get("for", ""), {}))
    return render_template("owner/webhooks.html", webhooks=rows, hosts=HOSTS, **choices(), **shown)


@views.post("/webhooks/create")
@shows_errors(show_webhooks)
def create_webhook() -> Response:
    """Create a webhook."""
    fields = new_webhook.load(typed_fields())
    check_address(request.service, fields["url"])
    webhook, secret = request.database.write(once.add_webhook, form_secret(), **fields)
    does_check = not any(fields["url"].startswith(str(host["url"]).partition("…")[0]) for host in HOSTS.values())
    return done(
        "/webhooks", "It is shown only once." if does_check else NO_CHECK, without_password(webhook.url), secret=secret
    )


@views.get("/webhooks/<id:webhook_id>/edit")
def show_webhook(webhook_id: int, **shown: Any) -> str:
    """Show a webhook's form."""
    webhook = webhooks.find(request.database, webhook_id)
    if not g.form:
        typed = [("url", without_password(webhook.url)), ("preset", "chosen"), ("body", webhook.body)]
        typed += [("events", event) for event in webhook.events]
        shown["typed"] = MultiDict([*typed, ("after_seconds", str(webhook.after_seconds))])
    pinged = ["ping"] if "ping" in webhook.events else []
    return render_template("owner/webhook.html", webhook=webhook, **choices(*pinged), **shown)


@views.post("/webhooks/<id:webhook_id>/edit")
@shows_errors(show_webhook)
def save_webhook(webhook_id: int) -> Response:
    """Change a webhook. Its headers stay unless they are retyped or removed, and its URL unless it is edited."""
    old, typed = webhooks.find(request.database, webhook_id), typed_fields()
    if "remove_headers" in g.form:
        typed = {"headers": {}} | typed
    if typed["url"] == without_password(old.url):
        del typed["url"]
    fields = change_of_webhook.load(typed)
    if "url" in fields:
        check_address(request.service, fields["url"])
    webhook = request.database.write(webhooks.change, webhook_id, fields)
    return done("/webhooks", "was saved.", without_password(webhook.url))


def choices(*others: str) -> dict[str, Any]:
    """Return the choices in a webhook's form; `others` are further events."""
    return {"events": [event for event in EVENTS if event != "ping"] + [*others], "bodies": webhooks.BODIES}


def typed_fields() -> dict[str, Any]:
    """Return the fields that were typed, as a JSON body would contain them. Raises ValidationError."""
    fields: dict[str, Any] = {"url": g.form.get("url", "").strip()}
    for name in ("url", "headers"):
        if found := PLACEHOLDER.search(g.form.get(name, "")):
            raise ValidationError(f"still has “{found[0]}”: put your own in its place", name)
    fields["events"] = PRESETS.get(g.form.get("preset", "")) or g.form.getlist("events")
    if seconds := g.form.get("after_seconds", "").strip():
        fields["after_seconds"] = int(seconds) if re.fullmatch("[0-9]{1,4}", seconds) else seconds
    if body := g.form.get("body"):
        fields["body"] = body
    if lines := [line for line in g.form.get("headers", "").split("\n") if line.strip()]:
        fields["headers"] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or name.strip() in fields["headers"]:
                raise ValidationError("must be lines such as Authorization: Bearer TOKEN, each name once", "headers")
            fields["headers"][name.strip()] = value.strip()
    return fields


@views.app_template_filter()
def without_password(url: str) -> str:
    """Return a URL to show, without the user and the password in it."""
    return re.sub("(?<=://)[^/?#]*@", "…@", url, count=1)


add_action(views, "/webhooks/<id:webhook_id>/ping", "A ping is on its way.", webhooks.ping)
add_action(views, "/webhooks/<id:webhook_id>/turn-on", "The webhook is on.", webhooks.change, changes={"active": True})
add_action(
    views, "/webhooks/<id:webhook_id>/turn-off", "The webhook is off.", webhooks.change, changes={"active": False}
)
add_action(views, "/webhooks/<id:webhook_id>/delete", "The webhook was deleted.", webhooks.remove, in_thread=True)
add_action(
    views, "/webhooks/<id:webhook_id>/<delivery_id:message_id>/resend", "It is on its way again.", webhooks.redeliver
)
