"""The owner's page as a whole: its blueprint, its static files, and the views of its sessions."""

import json
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

from flask import Blueprint, Response, g, render_template
from werkzeug.exceptions import NotFound

from blogapi.api.access import SelfGuarded, for_strangers
from blogapi.api.request import READ_METHODS, request
from blogapi.api.responses import redirect
from blogapi.markdown.files import block
from blogapi.wings.owner import frame, images, keys, posts, preview, sessions, tags, writing
from blogapi.wings.owner.fields import LABELS, MORE_FIELDS, marked
from blogapi.wings.owner.frame import address, done, sent_digest, set_cookie
from blogapi.wings.pages import add_static

views = Blueprint("views", __name__)


@views.route("/open", methods=["GET", "POST"])
@for_strangers
def open_session() -> str | Response:
    """Open a session with a link. Following the link only shows a button.

    Mail programs fetch links before people do, and browsers send no SameSite=Strict cookie after following a link.
    Anybody can send this form, so the link is checked before the write; otherwise, strangers could delay writers.
    """
    link = g.form.get("link") or request.args.get("link", "")
    days = sessions.check_link(request.database, link) or (sessions.STAY_DAYS if "stays" in g.form else 0)
    if request.method != "POST":
        return render_template("owner/open.html", link=link, days=days, stay_days=sessions.STAY_DAYS)
    token = request.database.write(sessions.open_by_link, link, days, request.headers.get("User-Agent", ""))
    response = redirect(address(), 303)
    # The server decides when a session with `days` ends. Browsers keep a cookie for at most 400 days.
    period = timedelta(days=400) if days else sessions.PERIODS[sessions.SESSION]
    set_cookie(response, token, period.total_seconds())
    return response


@views.get("/sessions")
def show_sessions() -> str:
    return render_template("owner/sessions.html", sessions=sessions.listing(request.database))


@views.post("/sessions/end")
def end_sessions() -> Response:
    if g.form.get("digest"):
        request.database.write(sessions.end, sent_digest())
        return done("/sessions", "The session was ended.")
    request.database.write(sessions.end_all)
    return redirect(address(), 303)


def index(path: str = "") -> Response:
    """Redirect to the posts. This view also handles unknown paths, so that they require a session."""
    if path or request.method not in READ_METHODS:
        raise NotFound("There is no such page.")
    return redirect(address("/posts"))


owner = SelfGuarded("owner", __name__, url_prefix=frame.ROOT, template_folder="templates")
owner.before_request(frame.check_session)
owner.after_request(frame.finish)
owner.teardown_request(lambda error: g.pop("opened", ExitStack()).close())
owner.context_processor(frame.context)
add_static(views, "", (Path(__file__).resolve().parent / "static").iterdir())
for blueprint in (views, *(module.views for module in (posts, writing, images, tags, keys, preview))):
    owner.register_blueprint(blueprint)
for path in ("", "/", "/<path:path>"):
    owner.add_url_rule(path, "index", index, methods=[*READ_METHODS, "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
for function, name in ((json.loads, "from_json"), (block, "yaml"), (marked, None), (sessions.browser_name, None)):
    owner.add_app_template_filter(function, name)
owner.record(lambda state: state.app.jinja_env.globals.update(labels=LABELS, more_fields=MORE_FIELDS))
