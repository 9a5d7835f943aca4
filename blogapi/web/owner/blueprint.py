"""The blueprint of the owner's page: what stands before its views, and what each answer carries."""

import hmac
from typing import Any
from urllib.parse import parse_qsl, urlencode

from flask import Blueprint, Response, g, render_template, request
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, Forbidden, NotFound

from blogapi.storage import keys
from blogapi.web.access import OWNER, PUBLIC
from blogapi.web.request import JSON, check_content_type, cookie, read_body
from blogapi.web.service import database, service

MAX_FORM_BYTES = 64 * 1024
SECTIONS = ("keys", "webhooks", "posts")
CHANGES = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]  # methods that need the token of a form
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

blueprint = Blueprint(OWNER, __name__, url_prefix="/settings", template_folder="templates")
notices: dict[str, str] = {}  # what the page says when a change is made, by the last word of its path


@blueprint.before_request
def check_request() -> None:
    """Demand a session, and of a change the token of its own form: no view has to remember it."""
    if request.path not in PUBLIC:
        token = cookie(request, cookie_name())
        if not keys.is_valid(database(), keys.SESSION, token):
            raise Forbidden("There is no session. On the server, “blogapi settings” prints a link that opens one.")
        g.session = token
    if request.method not in ("GET", "HEAD"):
        if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
            raise Forbidden("A page from elsewhere has sent this form. Nothing was changed.")
        g.form = load_form()
        given = g.form.get("form_token", "").encode()
        if request.path not in PUBLIC and not hmac.compare_digest(given, form_token(request.path).encode()):
            raise Forbidden("This form is not of this session. Nothing was changed; open the page anew.")


def cookie_name() -> str:
    """Return the name of the cookie; where TLS protects it, with the prefix for which browsers demand that."""
    return "__Secure-blogapi" if service().config.url.startswith("https:") else "blogapi"


def form_token(action: str) -> str:
    """Return what a form of this session for `action` carries, and no other can."""
    return hmac.digest(g.session.encode(), action.encode(), "sha256").hex()


def load_form() -> MultiDict[str, str]:
    """Return the fields of the form that was sent; raise the HTTP error that says what is wrong."""
    check_content_type(request, ("application/x-www-form-urlencoded",))
    try:
        text = read_body(request, MAX_FORM_BYTES).decode("ascii")
        return MultiDict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=100))
    except ValueError:
        raise BadRequest("the form cannot be read") from None


@blueprint.route("", methods=CHANGES)
@blueprint.route("/", methods=["GET", *CHANGES])
@blueprint.route("/<path:path>", methods=["GET", *CHANGES])
def unknown(path: str = "") -> None:
    """Answer for all other paths, so that they are behind the session, too."""
    raise NotFound


@blueprint.context_processor
def context() -> dict[str, Any]:
    """Return what every template can use."""
    query = urlencode({name: value for name, value in request.args.items() if name != "done"})
    notice = notices.get(request.args.get("done", ""))
    return {"form_token": form_token, "sections": SECTIONS, "query": query and f"?{query}", "notice": notice}


@blueprint.after_request
def finish(response: Response) -> Response:
    """Let an error be a page, too, and no answer be stored, framed, or told to other pages."""
    if response.mimetype == JSON:
        response.set_data(render_template("owner/error.html", **response.json))
        response.mimetype = "text/html"
        del response.headers["Cache-Control"]
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response
