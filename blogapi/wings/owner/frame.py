"""The frame of the owner's page: sessions, forms and their tokens, notices, and errors as pages."""

import hmac
import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, NoReturn

from flask import Response, g, render_template
from itsdangerous import BadSignature, URLSafeSerializer
from marshmallow import ValidationError
from multipart import MultipartSegment
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest, Forbidden, HTTPException, NotFound

from blogapi.api.access import is_for_strangers
from blogapi.api.request import MAX_BODY_BYTES, MAX_BODY_FIELDS, READ_METHODS, check_content_type, request
from blogapi.api.responses import redirect
from blogapi.clock import earlier
from blogapi.documents import MAX_TITLE
from blogapi.storage.errors import BadKeyName, Rejected, Unavailable
from blogapi.wings.forms import FORM, Form, Receive
from blogapi.wings.images.uploads import FileForm
from blogapi.wings.markdown.dates import rfc3339_of
from blogapi.wings.owner import sessions
from blogapi.wings.tags import storage as tags

ROOT = "/settings"
UPLOAD = "/images/upload"
COPIES = "/copies/"
PREVIEW = "/preview"  # receives a post's form, with a token of its own
MAX_FORM_BYTES = 64 * 1024  # limit for a form without a post or without a session, because an error page repeats it
MAX_COPY_BYTES = 4 * 1024 * 1024  # limit for a copy of a form
OFFERED_TAGS = 500
USE_PERIOD = timedelta(hours=1)  # the last use of a session is updated at most this often
MAX_TRAIL = 100  # the query lists at most this many newer pages
NOTICE, NOTICE_SECONDS = "-notice", 60
UNSAFE_METHODS = ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
FOR_WRITERS = {  # what the page shows instead of API messages with these beginnings
    "must not be in the future": "this date is in the future: choose Schedule, or clear it",
    "must be given, and in the future": "choose a date in the future to schedule the post",
    "must be a time in RFC 3339": "choose a date and a time",
    "must be an absolute http": "must be an address that begins with https:// or http://, without spaces",
}
NO_SESSION = "You have no session, or it has ended. On the server, “blogapi login” prints a link that opens one."
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; frame-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def check_session() -> None:
    """Require a session and, for a change, the token of its form; views need not check them.

    The form is read even without a session, so that the error page can keep what was typed.
    """
    g.form, request.error_page = MultiDict(), error_page
    is_public, is_change = is_for_strangers(request.path), request.method not in READ_METHODS
    if is_change and request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
        raise Forbidden("Another site sent this form. Nothing was changed.")
    try:
        if not is_public:
            token = read_cookie()
            session = sessions.find(request.database, sessions.SESSION, token)
            if session is None:
                raise Forbidden(NO_SESSION)
            request.session, request.info.credential, g.browser = token, token, session.browser
            if session.used_at <= earlier(request.database.now, USE_PERIOD):
                with suppress(Unavailable):
                    request.database.write_within(0, sessions.use, session)
    except (Forbidden, Unavailable):
        if is_change:
            with suppress(HTTPException):
                g.form = load_form()
        raise
    if is_change:
        g.form = load_form()
        if not is_public and request.method != "PUT":  # Other sites cannot send one: browsers ask first.
            check_token(g.form)


def check_token(form: Mapping[str, str]) -> None:
    """Raise Forbidden unless a form has its own token."""
    sent = form.get("preview_token" if own_path() == PREVIEW else "form_token", "")
    if not hmac.compare_digest(sent.encode(), form_token(own_path()).encode()):
        raise Forbidden("This form belongs to an earlier session. Nothing was changed.")


def load_form() -> MultiDict[str, str]:
    """Return the fields of the form that was sent. Raises an HTTPException.

    Percent-encoded forms are refused: a megabyte of Cyrillic would take 0.3 s to parse. Browsers send every line
    break as CRLF.
    """
    check_content_type(request, (FORM,))
    most = MAX_COPY_BYTES if request.session and request.method == "PUT" else MAX_FORM_BYTES
    form = Form(request, most, most, MAX_BODY_FIELDS)
    if request.session and request.path.endswith(("/posts/new", "/edit", PREVIEW, UPLOAD)):
        g.opened = ExitStack()
        form = ImageForm(request, g.opened, 1, MAX_BODY_BYTES, MAX_BODY_FIELDS)
        g.images = form.files
    try:
        form.read()
        return MultiDict((name, text.replace("\r\n", "\n")) for name, text in form.texts())
    except BadRequest:
        raise BadRequest("The form cannot be read.") from None


class ImageForm(FileForm):
    """A form that may contain an image."""

    def begin(self, part: MultipartSegment) -> Receive:
        if not part.filename:  # Browsers send an empty one if none was chosen.
            return super().begin(part)
        return self.begin_file(part)


def close_image(error: BaseException | None = None) -> None:
    """Close the temporary file of an uploaded image."""
    if "opened" in g:
        g.opened.close()


def form_token(action: str) -> str:
    """Return the token of the form for `action` in this session, unique to that form."""
    return hmac.digest(request.session.encode(), action.encode(), "sha256").hex() if request.session else ""


def form_secret() -> bytes:
    """Return 256 bits derived from this form. Sent again, it yields the same bits, and creates nothing twice."""
    sent = [g.form["nonce"], sorted(g.form.lists())]
    return hmac.digest(request.session.encode(), repr(sent).encode(), "sha256")


def cookie_name(suffix: str = "") -> str:
    """Return the name of a cookie. Browsers accept the prefix `__Secure-` over TLS only."""
    return f"{'__Secure-' if request.service.config.base_url.startswith('https:') else ''}blogapi{suffix}"


def read_cookie(suffix: str = "") -> str:
    """Return the value of a cookie, or "". Werkzeug would parse all of them, in quadratic time."""
    for pair in request.environ.get("HTTP_COOKIE", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == cookie_name(suffix):
            return value
    return ""


def set_cookie(response: Response, value: str, seconds: float, suffix: str = "") -> None:
    """Set a cookie for this page alone; the session's has no suffix."""
    name = cookie_name(suffix)
    secure = name.startswith("__Secure-")
    response.set_cookie(name, value, int(seconds), path=address(), secure=secure, httponly=True, samesite="Strict")


def own_path() -> str:
    """Return the path of the request below the root of this page."""
    return request.path.removeprefix(ROOT)


def address(path: str = "", root: str = ROOT) -> str:
    """Return the address of a path of this page, below the path of BLOGAPI_URL."""
    return request.address(root + path)


def own_image(url: str) -> str:
    """Return the address at which this page can show an image of this service, or "" for any other."""
    start = f"{request.service.config.base_url}/images/"
    return address(url.removeprefix(start), "/images/") if url.startswith(start) else ""


def known_tags() -> list[str]:
    """Return the names of tags to offer in a form; none without a session."""
    if request.session:
        with suppress(Unavailable):
            return [tag.name for tag in request.database.read_in_thread(request.client, tags.page, OFFERED_TAGS).items]
    return []


def asked() -> dict[str, str]:
    """Return the query of the request, without empty values and without the trail of `paging`."""
    return {name: value for name, value in request.args.items() if value and name != "newer"}


def paging(before: Any) -> dict[str, Any]:
    """Return the queries of the newer and the older page for a template; `before` is the start of the older one.

    `newer` in the query has the starts of the pages between the first and this one.
    """
    query = asked()
    trail, start = request.args.get("newer", "").split(), query.pop("before", None)
    passed = [*trail, start][-MAX_TRAIL:] if start else []
    return {
        "asked": query,
        "older": before and query | {"before": before, "newer": " ".join(passed)},
        "newer": start and query | {"before": trail[-1] if trail else "", "newer": " ".join(trail[:-1])},
    }


def local_time(text: str) -> str:
    """Convert a UTC time to the time zone of this page, without an offset; return anything else unchanged."""
    zone = request.service.config.timezone
    return datetime.fromisoformat(text).astimezone(zone).isoformat()[:19] if text.endswith("Z") else text


def utc_time(text: str) -> str:
    """Convert a typed time, in the time zone of this page unless it ends in Z, to UTC; leave other text unchanged."""
    if text and not text.endswith("Z"):
        with suppress(ValueError):
            return rfc3339_of(text, request.service.config.timezone)
    return text


def done(
    path: str, text: str, title: str = "", undo: tuple[str, dict[str, str]] | None = None, **secrets: str
) -> Response:
    """Redirect to a page with a notice, which is shown once.

    `undo` is the action of a form that undoes it, with its fields. The notice travels in a signed cookie, of less than
    4 KiB, so that the server keeps none of the `secrets` that are shown once.
    """
    response = redirect(address(path), 303)
    notice = {"path": path, "text": text, "title": title[:MAX_TITLE], "undo": undo} | secrets
    set_cookie(response, URLSafeSerializer(request.session, NOTICE).dumps(notice), NOTICE_SECONDS, NOTICE)
    return response


def read_notice() -> dict[str, Any]:
    """Return the notice that the redirect left for this page, or an empty one."""
    content = read_cookie(NOTICE) if request.session else ""
    with suppress(BadSignature):
        notice = URLSafeSerializer(request.session, NOTICE).loads(content)
        g.was_noticed = notice["path"] == own_path()
        return notice if g.was_noticed else {}
    return {}


def shows_errors(show: Callable[..., str | Response]) -> Callable:
    """Make a view answer invalid fields with the page of its form.

    `show` is the view of that page. It gets `wrong`, the messages by field name.
    """

    def decorate(view: Callable) -> Callable:
        @wraps(view)
        def answer(**arguments: Any) -> Any:
            try:
                return view(**arguments)
            except ValidationError as error:
                wrong = {name: _message(name, found) for name, found in error.normalized_messages().items()}
            except (Rejected, BadKeyName) as error:
                name = getattr(error, "field", "name")
                wrong = {name: str(error).removeprefix(f"{name}: ")}
            for name, said in wrong.items():
                wrong[name] = next((words for start, words in FOR_WRITERS.items() if said.startswith(start)), said)
            return show(**arguments, wrong=wrong), 400

        return answer

    return decorate


def _message(name: str, found: list[str] | dict[int | str, list[str]]) -> str:
    """Join the messages about a field; those about items of a list, or about params, say which."""
    if not isinstance(found, dict):
        return ", ".join(found)
    places = {place if isinstance(place, str) else f"{name[:-1]} {place + 1}": said for place, said in found.items()}
    return "; ".join(f"{place.lstrip('.')}: {', '.join(said)}".lstrip(": ") for place, said in places.items())


def unknown(path: str = "") -> NoReturn:
    """Answer all other paths, so that they need a session, too."""
    raise NotFound("There is no such page.")


def context() -> dict[str, Any]:
    """Return the names that every template can use."""
    names: dict[str, Any] = {"address": address, "form_token": form_token, "new_nonce": secrets.token_urlsafe}
    names |= {"own_image": own_image, "url_of": request.service.config.url_on_site, "known_tags": known_tags}
    names |= {"local_time": local_time, "utc_time": utc_time, "zone": str(request.service.config.timezone)}
    return names | {"url": request.service.config.base_url, "typed": g.form, "wrong": {}, "notice": read_notice()}


def error_page(status: int, message: str) -> str:
    """Return an error page, which keeps the post that was typed; if its post was deleted, the form creates one."""
    keeps_form = "content" in g.form and own_path() != PREVIEW and request.method == "POST"
    action = "/posts/new" if status == 404 else own_path()
    template = f"owner/{'write' if keeps_form else 'error'}.html"
    return render_template(template, action=action, error=status, message=message)


def finish(response: Response) -> Response:
    """Forbid browsers to cache or frame responses or to send referrers; drop a notice that was shown."""
    if g.get("was_noticed") and response.status_code == 200 and request.method == "GET":
        set_cookie(response, "", 0, NOTICE)
    if own_path() == PREVIEW:  # Its errors are shown in the frame, too.
        policy = HEADERS["Content-Security-Policy"].replace("frame-ancestors 'none'", "frame-ancestors 'self'")
        response.headers.setdefault("Content-Security-Policy", policy)
        response.headers.setdefault("X-Frame-Options", "SAMEORIGIN")
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response
