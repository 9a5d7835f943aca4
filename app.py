"""The WSGI application that gunicorn serves, and the sender of its webhooks."""

from blogapi import create_app
from blogapi.sender import Sender

app = create_app()
app.extensions["sender"] = Sender(
    app.extensions["clock"],
    app.extensions["config"].webhook_private,
    app.extensions["config"].webhook_seconds,
)
