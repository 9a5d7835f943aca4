"""The views of the owner's page for sessions and keys."""

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, g, render_template
from marshmallow import ValidationError

from blogapi.api.access import for_strangers
from blogapi.api.request import request
from blogapi.api.responses import redirect
from blogapi.storage import keys
from blogapi.storage.models import DRAFTS_ONLY, FULL, PUBLISHED_ONLY, READ_ONLY, SCOPES
from blogapi.wings.owner import once, sessions
from blogapi.wings.owner.frame import address, done, form_secret, set_cookie, shows_errors
from blogapi.wings.pages import send_static

STATIC = Path(__file__).resolve().parent / "static"
KEYS_PER_PAGE = 100
LEAST_FIRST = (PUBLISHED_ONLY, READ_ONLY, DRAFTS_ONLY, FULL)
# Words in a User-Agent and what they stand for; the first that it contains counts, because many also send later ones.
BROWSERS = {"Edg": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "FxiOS/": "Firefox", "CriOS/": "Chrome"}
BROWSERS |= {"Chrome/": "Chrome", "Safari/": "Safari", "curl/": "curl"}
SYSTEMS = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows", "Mac OS X": "Mac"}
SYSTEMS |= {"CrOS": "ChromeOS", "Linux": "Linux"}
views = Blueprint("views", __name__)


@for_strangers
def send_file() -> Response:
    """Send a static file of the page; it needs no session."""
    return send_static(STATIC / request.path.rpartition("/")[2])


for file in STATIC.iterdir():
    views.add_url_rule(f"/{file.name}", view_func=send_file)


@views.get("/open")
@views.post("/open")
@for_strangers
def open_session() -> str | Response:
    """Open a session with a link, after asking: mail programs and the like fetch links before people do.

    The link is checked before the write, because anybody can send this form, and other writers would wait for it. The
    cookie is SameSite=Strict: it would not be sent if the link itself opened the session.
    """
    link = g.form.get("link") or request.args.get("link", "")
    days = sessions.check_link(request.database, link)
    if request.method != "POST":
        return render_template("owner/open.html", link=link, days=days)
    token = request.database.write(sessions.open_by_link, link, request.headers.get("User-Agent", ""))
    response = redirect(address(), 303)
    # The server, not the cookie, ends a session that lasts for days. Browsers keep a cookie for at most 400 days.
    period = timedelta(days=400) if days else sessions.PERIODS[sessions.SESSION]
    set_cookie(response, token, period.total_seconds())
    return response


@views.post("/end")
def end_session() -> Response:
    """End the session."""
    request.database.write(sessions.end, keys.digest_of(request.session))
    return redirect(address(), 303)


@views.get("/sessions")
def show_sessions() -> str:
    """Show the sessions, most recently used first."""
    rows = [(session.digest.hex(), session) for session in sessions.listing(request.database)]
    return render_template("owner/sessions.html", sessions=rows, own=keys.digest_of(request.session).hex())


@views.post("/sessions/end")
def end_sessions() -> Response:
    """End one session, or all of them."""
    digest = g.form.get("digest", "")
    if not digest:
        request.database.write(sessions.end_all)
        return redirect(address(), 303)
    request.database.write(sessions.end, bytes.fromhex(digest) if re.fullmatch("[0-9a-f]{64}", digest) else b"")
    return done("/sessions", "The session was ended.")


@views.get("/keys")
def show_keys(**shown: Any) -> str:
    """Show the keys, and a form for another one."""
    found = keys.listing(request.database, KEYS_PER_PAGE + 1, request.args.get("after", ""))
    peek = request.service.limiter.peek
    rows = [(key, peek(key.name, request.database.engine.hits(key.digest))) for key in found[:KEYS_PER_PAGE]]
    last = rows[-1][0].name if len(found) > KEYS_PER_PAGE else None
    return render_template("owner/keys.html", keys=rows, last=last, scopes=LEAST_FIRST, **shown)


@views.post("/keys/create")
@shows_errors(show_keys)
def create_key() -> Response:
    """Create a key."""
    name, scope = g.form.get("name", "").strip(), g.form.get("scope")
    if scope not in SCOPES:
        raise ValidationError(f"must be one of {', '.join(SCOPES)}", "scope")
    key = keys.PREFIX + urlsafe_b64encode(form_secret()).decode().rstrip("=")
    request.database.write(once.add_key, name, key, scope)
    return done("/keys", "It is shown only once.", name, key=key)


@views.post("/keys/regenerate")
def regenerate_key() -> Response:
    """Replace a key with a new one."""
    name, key = g.form.get("name", ""), keys.new_key()
    request.database.write(keys.replace, name, key)
    return done("/keys", "The old key no longer works. The new one is shown only once.", name, key=key)


@views.app_template_filter()
def browser_name(user_agent: str) -> str:
    """Return the name of a browser and its system, such as "Firefox on Android", from its User-Agent."""
    browser = next((name for sign, name in BROWSERS.items() if sign in user_agent), "")
    system = next((name for sign, name in SYSTEMS.items() if sign in user_agent), "")
    return " on ".join(filter(None, (browser, system))) or user_agent[:60] or "An unknown browser"


def add_action(
    to: Blueprint, rule: str, text: str, operation: Callable, *fields: str, in_thread: bool = False, **fixed: Any
) -> None:
    """Add a view that runs one storage operation.

    The operation gets the arguments in the path, `fields` of the form, and `fixed`.
    """
    section = rule.split("/")[1]

    def view(**arguments: Any) -> Response:
        write = request.database.write_in_thread if in_thread else request.database.write
        write(operation, **arguments, **{name: g.form.get(name, "") for name in fields}, **fixed)
        return done(f"/{section}", text, g.form.get("name", ""))

    to.add_url_rule(rule, rule, view, methods=["POST"])


add_action(views, "/keys/revoke", "was revoked.", keys.remove, "name")
