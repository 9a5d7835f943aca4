"""The WSGI application that gunicorn's worker loads, and the sender of its webhooks.

The worker has had gevent patch the standard library by now, which urllib3 needs: gunicorn's master must not import it.
"""

from blogapi import create_app
from blogapi.webhooks.sender import Sender

app = create_app()
app.extensions["sender"] = Sender(
    app.extensions["database"],
    app.extensions["clock"],
    app.extensions["config"].webhook_private,
    app.extensions["config"].webhook_seconds,
)
