"""Code shared by the views of the owner's page: sessions, forms and their tokens, notices, and error pages."""

import hmac
import secrets
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from flask import Response, current_app, g, render_template
from itsdangerous import BadSignature, URLSafeSerializer
from marshmallow import ValidationError
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, Forbidden, HTTPException

from blogapi.api.access import is_for_strangers
from blogapi.api.forms import FORM, Form
from blogapi.api.request import MAX_BODY_BYTES, MAX_BODY_FIELDS, READ_METHODS, check_content_type, request
from blogapi.api.responses import redirect
from blogapi.clock import earlier
from blogapi.documents import MAX_TITLE
from blogapi.markdown.dates import rfc3339_of
from blogapi.posts import due
from blogapi.storage.errors import BadKeyName, Rejected, Unavailable
from blogapi.storage.keys import digest_of
from blogapi.wings.images.uploads import FileForm
from blogapi.wings.owner import sessions
from blogapi.wings.tags import storage as tags

ROOT = "/settings"
UPLOAD = "/images/upload"
COPIES = "/copies/"
PREVIEW = "/preview"  # this path receives a post's form, which must contain a separate token for it
# maximum size of a form other than a post's, and of any form sent without a session, which the error page shows again
MAX_FORM_BYTES = 64 * 1024
MAX_COPY_BYTES = 4 * 1024 * 1024  # maximum size of the unsaved draft in a post's form
OFFERED_TAGS = 500
USE_PERIOD = timedelta(hours=1)  # the last use of a session is recorded at most once in this period
NOTICE, NOTICE_SECONDS = "-notice", 60
FOR_WRITERS = {  # maps the beginning of an API message to the message that the page shows instead
    "must not be in the future": "this date is in the future: press Schedule, or choose a past date",
    "must be given, and in the future": "choose a date in the future to schedule the post",
    "must be a time in RFC 3339": "choose a date and a time",
    "must be an absolute http": "must be an address that begins with https:// or http://, without spaces",
    "must have 1 to 255": "a post needs a title of at most 255 characters",
    "must contain a visible character": "some text is needed",
}
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def check_session() -> None:
    """Require a session and, for a change, the form's CSRF token. Without a session, the error page shows the form."""
    g.form, request.error_page = MultiDict(), error_page
    is_public = is_for_strangers(current_app.view_functions[request.endpoint or ""])
    is_change = request.method not in READ_METHODS
    if is_change and request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
        raise Forbidden("Nothing was changed, because another site sent this form.")
    try:
        if not is_public:
            use_session(read_cookie())
    except (Forbidden, Unavailable):
        if is_change:
            with suppress(HTTPException):
                g.form = load_form()
        raise
    if is_change:
        g.form = load_form()
        if not is_public and request.method != "PUT":  # Browsers do not let other sites send PUT.
            token = g.form.get("preview_token" if own_path() == PREVIEW else "form_token", "")
            if not hmac.compare_digest(token.encode(), form_token(own_path()).encode()):
                raise Forbidden("This form belongs to an earlier session. Reload the page, then try again.")
    if request.session:
        due.publish_for_request(request.service)


def use_session(token: str) -> None:
    """Continue the session with this token, and record its use. Raises Forbidden if there is no such session."""
    session = sessions.find(request.database, sessions.SESSION, token)
    if session is None:
        raise Forbidden("You are not signed in, or your session has ended.")
    request.session, request.info.credential, g.browser = token, token, session.browser
    if session.used_at <= earlier(request.database.now, USE_PERIOD):
        with suppress(Unavailable):
            request.database.write_within(0, sessions.use, session)


def load_form() -> MultiDict[str, str]:
    """Return the fields of the request's form. Raises an HTTPException.

    The date is converted to UTC, and each CRLF is converted to LF. A slug that the page suggested and the writer
    did not edit becomes empty, so that saving the post derives it from the title.
    """
    check_content_type(request, (FORM,))  # Multipart only: parsing 1 MB of percent-encoded Cyrillic takes 0.3 s.
    most = MAX_COPY_BYTES if request.session and request.method == "PUT" else MAX_FORM_BYTES
    form = Form(request, most, most, MAX_BODY_FIELDS)
    if request.session and request.path.endswith(("/posts/new", "/edit", PREVIEW, UPLOAD)):
        g.opened = ExitStack()
        form = FileForm(request, g.opened, 1, MAX_BODY_BYTES, MAX_BODY_FIELDS)
        g.images = form.files
    try:
        form.read()
        fields = MultiDict((name, text.replace("\r\n", "\n")) for name, text in form.texts())
    except BadRequest:
        raise BadRequest("The form cannot be read.") from None
    if date := fields.get("published_at"):
        fields["published_at"] = utc_time(date)
    if fields.get("slug") == fields.get("suggested", ""):
        fields["slug"] = ""
    return fields


def form_token(action: str) -> str:
    """Return the token that a form with this action must contain in this session."""
    return hmac.digest(request.session.encode(), action.encode(), "sha256").hex() if request.session else ""


def cookie_name(suffix: str = "") -> str:
    """Return the name of a cookie. Browsers accept its `__Secure-` prefix only over TLS."""
    return f"{'__Secure-' if request.service.config.base_url.startswith('https:') else ''}blogapi{suffix}"


def read_cookie(suffix: str = "") -> str:
    """Return the value of a cookie, or "". Werkzeug's parser is not used, because it takes quadratic time."""
    for pair in request.environ.get("HTTP_COOKIE", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == cookie_name(suffix):
            return value
    return ""


def set_cookie(response: Response, value: str, seconds: float, suffix: str = "") -> None:
    """Set a cookie for the owner's page only. The session cookie has no suffix."""
    name = cookie_name(suffix)
    secure = name.startswith("__Secure-")
    response.set_cookie(name, value, int(seconds), path=address(), secure=secure, httponly=True, samesite="Strict")


def sent_digest() -> bytes:
    """Return the digest that the form contains in hexadecimal, or b"" if it is missing or invalid."""
    with suppress(ValueError):
        return bytes.fromhex(g.form.get("digest", ""))
    return b""


def own_path() -> str:
    """Return the request's path relative to ROOT."""
    return request.path.removeprefix(ROOT)


def address(path: str = "", root: str = ROOT) -> str:
    """Return the URL of a path on this page, including the path of BLOGAPI_URL."""
    return request.with_prefix(root + path)


def own_image(url: str) -> str:
    """Return the URL from which this page can load one of the service's images, or "" for any other URL."""
    start = f"{request.service.config.base_url}/images/"
    return address(url.removeprefix(start), "/images/") if url.startswith(start) else ""


def known_tags() -> list[str]:
    with suppress(Unavailable):
        return [tag.name for tag in request.database.read_in_thread(request.client, tags.page, OFFERED_TAGS).items]
    return []


def asked() -> dict[str, str]:
    """Return the request's query parameters except empty ones and `newer`, which lists the newer pages."""
    return {name: value for name, value in request.args.items() if value and name != "newer"}


def local_time(text: str) -> str:
    """Convert a UTC time to this page's time zone, without an offset; return anything else unchanged."""
    if text.endswith("Z"):
        with suppress(ValueError, OverflowError):
            return datetime.fromisoformat(text).astimezone(request.service.config.timezone).isoformat()[:19]
    return text


def utc_time(text: str) -> str:
    """Convert a typed time from this page's time zone to UTC; return anything else unchanged."""
    if not text.endswith("Z"):
        with suppress(ValueError):
            return rfc3339_of(text, request.service.config.timezone)
    return text


def done(path: str, text: str, title: str = "", undo: tuple[str, dict] | None = None, **shown_once: str) -> Response:
    """Redirect to a page that shows a notice and, if `undo` is given, an Undo button.

    `undo` is the action and the fields of the button's form. A signed cookie of less than 4 KiB contains the notice, so
    the server does not have to store the secrets in `shown_once`.
    """
    response = redirect(address(path), 303)
    notice = {"path": path, "text": text, "title": title[:MAX_TITLE], "undo": undo} | shown_once
    set_cookie(response, URLSafeSerializer(request.session, NOTICE).dumps(notice), NOTICE_SECONDS, NOTICE)
    return response


def read_notice(path: str) -> dict[str, Any]:
    """Return the notice for the page at a path from the cookie, or an empty one."""
    with suppress(BadSignature):
        notice = URLSafeSerializer(request.session, NOTICE).loads(read_cookie(NOTICE) if request.session else "")
        return notice if notice["path"] == path else {}
    return {}


def shows_errors(show: Callable[..., str | Response]) -> Callable:
    """Make a view call `show`, the view of its form, if the input is invalid; `wrong` maps fields to messages."""

    def decorate(view: Callable) -> Callable:
        @wraps(view)
        def answer(**arguments: Any) -> Any:
            try:
                return view(**arguments)
            except ValidationError as error:
                wrong = {name: _message(name, reasons) for name, reasons in error.normalized_messages().items()}
            except (Rejected, BadKeyName) as error:
                name = getattr(error, "field", "name")
                wrong = {name: _message(name, [str(error).removeprefix(f"{name}: ")])}
            return show(**arguments, wrong=wrong), 400

        return answer

    return decorate


def _message(name: str, reasons: list[str] | dict[int | str, list[str]]) -> str:
    """Join the messages about a field, using those in FOR_WRITERS. Name the list item or param that is invalid."""
    if not isinstance(reasons, dict):
        message = ", ".join(reasons)
        return next((words for start, words in FOR_WRITERS.items() if message.startswith(start)), message)
    places = {at if isinstance(at, str) else f"{name[:-1]} {at + 1}": reasons[at] for at in reasons}
    return "; ".join(f"{place.lstrip('.')}: {', '.join(said)}".lstrip(": ") for place, said in places.items())


def context() -> dict[str, Any]:
    """Return the names available in every template."""
    names: dict[str, Any] = {"address": address, "form_token": form_token, "new_nonce": secrets.token_urlsafe}
    names |= {"own_image": own_image, "url_of": request.service.config.url_on_site, "known_tags": known_tags}
    names |= {"local_time": local_time, "zone": str(request.service.config.timezone)}
    names |= {"asked": asked(), "own": digest_of(request.session)}
    g.notice = names["notice"] = read_notice(own_path())
    return names | {"url": request.service.config.base_url, "typed": g.form, "wrong": {}}


def error_page(status: int, message: str) -> str:
    """Return an error page with the post's form, if one was sent. If the post was deleted, saving creates a new one."""
    keeps_form = "content" in g.form and own_path() != PREVIEW and request.method == "POST"
    action = "/posts/new" if status == 404 else own_path()
    name = "write" if keeps_form else "error"
    return render_template(f"owner/{name}.html", action=action, error=status, message=message)


def finish(response: Response) -> Response:
    """Add the security headers. If the page shows a notice, delete its cookie."""
    if g.get("notice") and response.status_code == 200 and request.method == "GET":
        set_cookie(response, "", 0, NOTICE)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response
