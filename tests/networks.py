"""Other WSGI servers: application tests can send their requests through one of them (`pytest --over SERVER`)."""

import http.client
import threading
from contextlib import closing
from functools import cache
from urllib.parse import quote
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.validate import validator

import waitress

ASCII = "".join(map(chr, range(33, 127)))

SERVERS = ("wsgiref", "waitress")
OWN = ("Server", "Date", "Connection", "Via")  # headers that servers add
# waitress spells header names in its own way.
SPELLED = {
    name.title(): name for name in ("ETag", *(f"X-RateLimit-{part}" for part in ("Limit", "Remaining", "Reset")))
}


class Quiet(WSGIRequestHandler):
    def log_message(self, *arguments):
        """Log nothing."""

    def get_environ(self):
        """Return the environ; without a Content-Type, wsgiref would say text/plain."""
        environ = super().get_environ()
        return environ if "content-type" in self.headers else environ | {"CONTENT_TYPE": ""}


@cache
def listen(wsgi, name):
    """Serve an application with one of SERVERS until the tests end; return the port."""
    if name == "wsgiref":
        server = make_server("127.0.0.1", 0, validator(wsgi), handler_class=Quiet)
        port, run = server.server_port, server.serve_forever
    else:
        server = waitress.create_server(wsgi, host="127.0.0.1", port=0, threads=4)
        port, run = server.effective_port, server.run
    threading.Thread(target=run, daemon=True).start()
    return port


def forward(port):
    """Return a WSGI application that sends every request to a port of this machine."""

    def application(environ, start_response):
        headers = {name[5:].replace("_", "-"): value for name, value in environ.items() if name.startswith("HTTP_")}
        for name in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            if environ.get(name):
                headers[name.replace("_", "-")] = environ[name]
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        target = environ["RAW_URI"].partition("?")[0]
        if environ["QUERY_STRING"]:
            target = f"{target}?{environ['QUERY_STRING']}"
        with closing(connection):
            connection.request(environ["REQUEST_METHOD"], quote(target, safe=ASCII), body or None, headers)
            answer = connection.getresponse()
            kept = [(SPELLED.get(name, name), value) for name, value in answer.getheaders() if name not in OWN]
            start_response(f"{answer.status} {answer.reason}", kept)
            return [answer.read()]

    return application
