"""The owner's views of keys and webhooks. A form that is sent twice creates only one key or webhook."""

import hmac
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, g, render_template
from marshmallow import ValidationError
from peewee import Select
from werkzeug.datastructures import MultiDict

from blogapi.api.request import request
from blogapi.storage import keys
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import NotUnique, Rejected
from blogapi.storage.models import SCOPES, ApiKey, Idempotency, Webhook
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.views import WebhookChangeSchema, WebhookInputSchema, check_address
from blogapi.wings.owner.frame import done, shows_errors

KEYS_PER_PAGE = 100
SHOWN_DELIVERIES = 10  # deliveries shown for each webhook
new_webhook, change_of_webhook = WebhookInputSchema(), WebhookChangeSchema(partial=True)
CHOICES = {"events": webhooks.EVENTS, "everything": webhooks.DEFAULT_EVENTS, "bodies": webhooks.BODIES}  # in the form
PLACEHOLDER = re.compile("…(?!@)|OWNER(?=/)|REPOSITORY(?=/)|(?<=Bearer )TOKEN")
WEBHOOK = "/webhooks/<id:webhook_id>"
views = Blueprint("keys", __name__)


def form_secret() -> bytes:
    """Derive a 256-bit secret from the form, so that sending the form again yields the same secret."""
    sent = [g.form["nonce"], sorted(g.form.lists())]
    return hmac.digest(request.session.encode(), repr(sent).encode(), "sha256")


def add_once(tx: Transaction, used: str, existing: Select, add: Callable, **fields: Any) -> None:
    """Create a key or a webhook with the secret `used`, unless it already exists. Raises Rejected if it was deleted."""
    if tx.row(existing):
        return
    # The record outlives the session. Its empty name distinguishes it from an Idempotency-Key, which is never empty.
    row = {"digest": keys.digest_of(used), "name": "", "request": b"", "post_id": 0, "created_at": tx.now}
    try:
        tx.execute(Idempotency.insert(row))
    except NotUnique:
        raise Rejected("Idempotency-Key", "what it created is gone") from None
    add(tx, **fields)


# Keys


@views.get("/keys")
def show_keys(**shown: Any) -> str:
    """Show the keys, and a form for a new key."""
    known = keys.listing(request.database, KEYS_PER_PAGE + 1, request.args.get("after", ""))
    peek = request.service.limiter.peek
    rows = [(key, peek(key.name, request.database.engine.hits(key.digest))) for key in known[:KEYS_PER_PAGE]]
    last = rows[-1][0].name if len(known) > KEYS_PER_PAGE else None
    return render_template("owner/keys.html", keys=rows, last=last, **shown)


@views.post("/keys/create")
@shows_errors(show_keys)
def create_key() -> Response:
    name, scope = g.form.get("name", "").strip(), g.form.get("scope")
    if scope not in SCOPES:
        raise ValidationError(f"must be one of {', '.join(SCOPES)}", "scope")
    key = keys.PREFIX + urlsafe_b64encode(form_secret()).decode().rstrip("=")
    existing = ApiKey.select(ApiKey.name).where(ApiKey.name == name, ApiKey.digest == keys.digest_of(key))
    request.database.write(add_once, key, existing, keys.add, name=name, key=key, scope=scope)
    return done("/keys", "It will not be shown again.", name, key=key)


@views.post("/keys/regenerate")
def regenerate_key() -> Response:
    name, key = g.form.get("name", ""), keys.new_key()
    request.database.write(keys.regenerate, name, key)
    return done("/keys", "The old key no longer works. The new one will not be shown again.", name, key=key)


# Webhooks


@views.get("/webhooks")
def show_webhooks(**shown: Any) -> str:
    """Show the webhooks with their latest deliveries, and a form for a new webhook, filled in from the query."""
    database, read = request.database, (webhooks.deliveries, webhooks.subjects)
    known = webhooks.listing(database)
    rows = [(webhook, *(listing(database, webhook.id, SHOWN_DELIVERIES) for listing in read)) for webhook in known]
    return render_template("owner/webhooks.html", webhooks=rows, **CHOICES, **shown)


@views.post("/webhooks/create")
@shows_errors(show_webhooks)
def create_webhook() -> Response:
    fields = new_webhook.load(typed_fields())
    check_address(request.service, fields["url"])
    secret = webhooks.SECRET_PREFIX + b64encode(form_secret()).decode()
    existing = Webhook.select(Webhook.id).where(Webhook.secret == secret)
    request.database.write(add_once, secret, existing, webhooks.add, **fields, secret=secret)
    return done("/webhooks", "It will not be shown again.", without_password(fields["url"]), secret=secret)


@views.get(f"{WEBHOOK}/edit")
def show_webhook(webhook_id: int, **shown: Any) -> str:
    webhook = webhooks.get(request.database, webhook_id)
    if not g.form:
        shown["typed"] = MultiDict(webhook._asdict() | {"url": without_password(webhook.url), "preset": ""})
    return render_template("owner/webhook.html", webhook=webhook, **CHOICES, **shown)


@views.post(f"{WEBHOOK}/edit")
@shows_errors(show_webhook)
def save_webhook(webhook_id: int) -> Response:
    """Change a webhook. Headers are kept unless retyped or removed, and the URL is kept unless edited."""
    old, typed = webhooks.get(request.database, webhook_id), typed_fields()
    if "remove_headers" in g.form:
        typed = {"headers": {}} | typed
    if typed["url"] == without_password(old.url):
        del typed["url"]
    fields = change_of_webhook.load(typed)
    if "url" in fields:
        check_address(request.service, fields["url"])
    webhook = request.database.write(webhooks.change, webhook_id, fields)
    return done("/webhooks", "was saved.", without_password(webhook.url))


def typed_fields() -> dict[str, Any]:
    """Parse the fields entered in the form. Raises ValidationError."""
    fields: dict[str, Any] = {"url": g.form.get("url", "").strip()}
    for name in ("url", "headers"):
        if placeholder := PLACEHOLDER.search(g.form.get(name, "")):
            raise ValidationError(f"still has “{placeholder[0]}”: put your own in its place", name)
    fields["events"] = g.form.get("preset", "").split() or g.form.getlist("events")
    if seconds := g.form.get("after_seconds", "").strip():
        fields["after_seconds"] = int(seconds) if re.fullmatch("[0-9]{1,4}", seconds) else seconds
    if body := g.form.get("body"):
        fields["body"] = body
    if lines := [line for line in g.form.get("headers", "").split("\n") if line.strip()]:
        pairs = [line.partition(":") for line in lines]
        fields["headers"] = {name.strip(): value.strip() for name, _, value in pairs}
        if len(fields["headers"]) < len(lines) or not all(colon for _, colon, _ in pairs):
            raise ValidationError("must be lines such as Authorization: Bearer TOKEN, each name once", "headers")
    return fields


@views.app_template_filter()
def without_password(url: str) -> str:
    """Return a URL with its user and password hidden."""
    return re.sub("(?<=://)[^/?#]*@", "…@", url, count=1)


def add_action(rule: str, text: str, operation: Callable, *fields: str, in_thread: bool = False, **fixed: Any) -> None:
    """Add a view that calls an operation with arguments from its path, these `fields` of its form, and `fixed`."""

    def view(**arguments: Any) -> Response:
        write = request.database.write_in_thread if in_thread else request.database.write
        write(operation, **arguments, **{name: g.form.get(name, "") for name in fields}, **fixed)
        return done(f"/{rule.split('/')[1]}", text, g.form.get("name", ""))

    views.add_url_rule(rule, rule, view, methods=["POST"])


add_action("/keys/revoke", "was revoked.", keys.revoke, "name")
add_action(f"{WEBHOOK}/ping", "A ping is on its way.", webhooks.ping)
add_action(f"{WEBHOOK}/turn-on", "The webhook is on.", webhooks.change, changes={"active": True})
add_action(f"{WEBHOOK}/turn-off", "The webhook is off.", webhooks.change, changes={"active": False})
add_action(f"{WEBHOOK}/delete", "The webhook was deleted.", webhooks.delete, in_thread=True)
add_action(f"{WEBHOOK}/<delivery_id:message_id>/resend", "The message is on its way again.", webhooks.redeliver)
