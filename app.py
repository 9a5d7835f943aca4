"""The WSGI application that gunicorn's worker loads, and the sender of its webhooks.

The worker imports it after gevent has patched the standard library, as urllib3 needs; gunicorn's master must not.
"""

from blogapi import create_app
from blogapi.server.worker import timeout
from blogapi.webhooks.sender import Sender

app = create_app()
app.extensions["sender"] = Sender(
    app.extensions["database"],
    app.extensions["clock"],
    app.extensions["config"].webhook_private,
    app.extensions["config"].webhook_seconds,
    timeout,
)
