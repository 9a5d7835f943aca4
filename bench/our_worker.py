"""The floor's bare Flask view and bare WSGI function, on our worker."""

from bench.floor import app as flask_view
from bench.floor import function
from blogapi.api.service import EXTENSION
from blogapi.server.handler import Handler, load


def app(kind: str) -> object:
    """Return our application, with a handler that serves the bare one."""
    ours = load()
    ours.extensions["handler"] = Handler({"flask": flask_view, "function": function}[kind], ours.extensions[EXTENSION])
    return ours
