"""The WSGI application, for any WSGI server. `make run` serves it with gunicorn: see blogapi/server."""

from blogapi import create_app

app = create_app()
