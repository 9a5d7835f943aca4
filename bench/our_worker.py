"""The bare Flask view and the bare WSGI function of the floor, on our worker."""

from bench.floor import app as flask_view
from bench.floor import function
from blogapi.app import app as ours


def app(kind: str) -> object:
    """Return our application, which hands every request to the bare one."""
    ours.wsgi_app = {"flask": flask_view.wsgi_app, "function": function}[kind]
    return ours
