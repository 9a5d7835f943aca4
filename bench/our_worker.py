"""The bare Flask view and the bare WSGI function of the floor, on our worker."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace

from bench.floor import app as flask_view
from bench.floor import function
from blogapi.app import app as ours
from blogapi.web.request import REQUEST


def app(kind: str) -> object:
    """Return our application, which hands every request to the bare one."""
    bare = {"flask": flask_view.wsgi_app, "function": function}[kind]
    known = SimpleNamespace(key=None, endpoint=None, cause="")  # what the worker logs and counts

    def wsgi_app(environ: dict, start_response: Callable) -> Iterable[bytes]:
        environ[REQUEST] = known
        return bare(environ, start_response)

    ours.wsgi_app = wsgi_app
    return ours
