"""How the command line becomes the server."""

import os
import socket
import sys
from typing import NoReturn

SETTINGS = "python:blogapi.gunicorn_conf"


def become_server() -> NoReturn:
    """Run gunicorn in place of this process, which has imported what gevent is to patch first."""
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "--config", SETTINGS])


def refuse_taken_address(host: str, port: int) -> None:
    """Raise OSError if the address cannot be listened on. gunicorn would try for five seconds."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "no valid name of a host")
        raise OSError(f"cannot listen on {host} port {port}: {reason}; set HOST or PORT") from error
