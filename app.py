"""The WSGI application, for any WSGI server. `make run` serves it with gunicorn: see blogapi/server.

Under another WSGI server, webhooks are not sent, and the memory for requests and responses is not bounded.
"""

from blogapi import create_app

app = create_app()
