"""The bare Flask view and the bare WSGI function of the floor, on our worker."""

from collections.abc import Callable, Iterable

from bench.floor import app as flask_view
from bench.floor import function
from blogapi.app import app as ours
from blogapi.app import service
from blogapi.web.request import REQUEST, Request


def app(kind: str) -> object:
    """Return our application, which hands every request to the bare one."""
    bare = {"flask": flask_view.wsgi_app, "function": function}[kind]
    known = Request({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, service)  # what the worker logs and counts

    def wsgi_app(environ: dict, start_response: Callable) -> Iterable[bytes]:
        environ[REQUEST] = known
        return bare(environ, start_response)

    ours.wsgi_app = wsgi_app
    return ours
