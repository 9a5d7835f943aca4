"""The blueprint of the owner's page: sessions, form tokens, notices, and the headers of every answer."""

import hmac
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from typing import Any

from flask import Blueprint, Response, g, redirect, render_template, request
from werkzeug.exceptions import Forbidden, HTTPException, NotFound

from blogapi.post import MAX_TITLE
from blogapi.storage import keys
from blogapi.web.access import PUBLIC
from blogapi.web.owner.forms import load_form
from blogapi.web.request import JSON, MAX_BODY_BYTES, cookie, current_request
from blogapi.web.service import database, service

ROOT = "/settings"
MAX_FORM_BYTES = 64 * 1024
MAX_KEPT_FORM_BYTES = 1024 * 1024  # without a session: anybody can send it, and the page is up to five times as long
NOTICE_SECONDS = 60
SECTIONS = ("posts", "keys", "webhooks")
CHANGES = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]  # methods that need the token of a form
NO_SESSION = "You have no session, or it has ended. On the server, “blogapi settings” prints a link that opens one."
OTHER_FORM = "This form belongs to an earlier session. Nothing was changed."
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

blueprint = Blueprint("owner", __name__, url_prefix=ROOT, template_folder="templates")


@blueprint.before_request
def check_request() -> None:
    """Demand a session, and for a change the token of its own form: no view has to remember it.

    The form of a post is read even without a session, so that the error page can keep what was typed.
    """
    is_public, writes_post = request.path in PUBLIC, request.path.endswith(("/posts/new", "/edit"))
    token = cookie(request, cookie_name())
    if not is_public and keys.is_valid(database(), keys.SESSION, token):
        g.session = current_request().session = token
    if request.method not in ("GET", "HEAD"):
        if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
            raise Forbidden("Another site sent this form. Nothing was changed.")
        if is_public or "session" in g:
            g.form = load_form(MAX_BODY_BYTES if writes_post else MAX_FORM_BYTES)
        elif writes_post:
            with suppress(HTTPException):
                g.form = load_form(MAX_KEPT_FORM_BYTES)
    if not is_public:
        check_session()


def check_session() -> None:
    """Raise Forbidden without a session, and for a form that is not of this session or for another action."""
    if "session" not in g:
        raise Forbidden(NO_SESSION)
    if "form" in g and not hmac.compare_digest(g.form.get("form_token", "").encode(), form_token(path()).encode()):
        raise Forbidden(OTHER_FORM)


def cookie_name() -> str:
    """Return the name of the session's cookie. Browsers accept the prefix `__Secure-` over TLS only."""
    return "__Secure-blogapi" if service().config.url.startswith("https:") else "blogapi"


def set_cookie(response: Response, name: str, value: str, seconds: float) -> None:
    """Set a cookie for this page alone."""
    secure = name.startswith("__Secure-")
    response.set_cookie(name, value, int(seconds), path=address(), secure=secure, httponly=True, samesite="Strict")


def path() -> str:
    """Return the path of the request below the root of this page."""
    return request.path.removeprefix(ROOT)


def address(path: str = "", root: str = ROOT) -> str:
    """Return the address of a path of this page, below the path of BLOGAPI_URL."""
    return current_request().address(root + path)


def form_token(action: str) -> str:
    """Return the token of the form for `action` in this session; no other form has it."""
    return hmac.digest(g.session.encode(), action.encode(), "sha256").hex() if "session" in g else ""


def done(path: str, text: str, title: str = "", **shown: Any) -> Response:
    """Redirect to a page that shows once what was done.

    `undo` is the action of a form that undoes it, with its fields. The notice travels in a signed cookie, of less than
    4 KiB, so that the server keeps no secret that is shown once.
    """
    notice = json.dumps({"text": text, "title": title[:MAX_TITLE]} | shown, ensure_ascii=False)
    content = urlsafe_b64encode(notice.encode()).decode()
    response = redirect(address(path), 303)
    set_cookie(response, f"{cookie_name()}-notice", f"{form_token(content)}.{content}", NOTICE_SECONDS)
    return response


def read_notice() -> dict[str, Any]:
    """Return the notice that the redirect left, or an empty one."""
    token, _, content = cookie(request, f"{cookie_name()}-notice").partition(".")
    if "session" not in g or not content or not hmac.compare_digest(token.encode(), form_token(content).encode()):
        return {}
    g.was_noticed = True
    return json.loads(urlsafe_b64decode(content))


@blueprint.route("", methods=CHANGES)
@blueprint.route("/", methods=["GET", *CHANGES])
@blueprint.route("/<path:path>", methods=["GET", *CHANGES])
def unknown(path: str = "") -> None:
    """Answer all other paths, so that they need a session, too."""
    raise NotFound("There is no such page.")


@blueprint.context_processor
def context() -> dict[str, Any]:
    """Return the names that every template can use."""
    typed = {"typed": g.get("form", {}), "wrong": {}}
    return typed | {"address": address, "form_token": form_token, "sections": SECTIONS, "notice": read_notice()}


@blueprint.after_request
def finish(response: Response) -> Response:
    """Turn an error into a page that keeps what was typed; forbid storing, framing and referring to answers."""
    if response.mimetype == JSON:
        template = "write" if "content" in g.get("form", {}) else "error"
        action = "/posts/new" if response.status_code == 404 else path()  # A post that was deleted is created again.
        response.set_data(render_template(f"owner/{template}.html", action=action, **response.json))
        response.mimetype = "text/html"
        del response.headers["Cache-Control"]
    if "was_noticed" in g:
        set_cookie(response, f"{cookie_name()}-notice", "", 0)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response
