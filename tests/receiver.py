"""A webhook receiver for the tests, on the loopback interface."""

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Message(NamedTuple):
    path: str
    headers: dict
    body: bytes

    @property
    def id(self):
        return self.headers["webhook-id"]

    @property
    def payload(self):
        return json.loads(self.body)

    @property
    def type(self):
        return self.payload["type"]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # The service was killed before it had sent everything.
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.receiver.messages.append(Message(self.path, headers, body))
        self.server.receiver.answer(self)

    def do_GET(self):  # the target of a followed redirect
        self.do_POST()

    def do_PUT(self):
        self.do_POST()

    def log_message(self, *args):
        pass


class Receiver:
    """Records the messages that it gets, and responds with `status` or, if `answer` is set, by calling it."""

    def __init__(self, port=0, tls=None):
        self.messages = []
        self.status = 204
        self.headers = {}
        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.receiver = self
        self.server.daemon_threads = True
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, args=[0.02])

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc_info):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def answer(self, handler):
        handler.send_response_only(self.status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        handler.end_headers()

    @property
    def types(self):
        return [message.type for message in self.messages]


def make_certificate(folder):
    """Create a self-signed certificate for localhost; return the file with it and its key."""
    file, key = folder / "certificate.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run([*command, *names, "-keyout", key, "-out", file], check=True, capture_output=True)
    file.write_text(file.read_text() + key.read_text())
    return file
