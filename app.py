"""The WSGI application that gunicorn's worker loads, and the sender of its webhooks.

The worker has had gevent patch the standard library by now, which urllib3 needs: gunicorn's master must not import it.
"""

from blogapi import create_app
from blogapi.webhooks.sender import Sender

app = create_app()
service = app.extensions["blogapi"]
app.extensions["sender"] = Sender(
    service.database, service.clock, service.config.webhook_private, service.config.webhook_seconds
)
