"""The floor's bare Flask view and bare WSGI function, on our worker."""

from bench.floor import app as flask_view
from bench.floor import function
from blogapi.server.app import app as ours
from blogapi.server.app import service
from blogapi.server.handler import Handler


def app(kind: str) -> object:
    """Return our application, with a handler that serves the bare one."""
    ours.extensions["handler"] = Handler({"flask": flask_view, "function": function}[kind], service)
    return ours
