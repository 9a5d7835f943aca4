"""The bare Flask view and the bare WSGI function of the floor, on our worker."""

from bench.floor import app as flask_view
from bench.floor import function
from blogapi.server.app import app as ours
from blogapi.server.app import service
from blogapi.server.handler import Handler


def app(kind: str) -> object:
    """Return our application, whose handler serves the bare one."""
    ours.extensions["handler"] = Handler({"flask": flask_view, "function": function}[kind], service)
    return ours
