"""The application in callgrind, which makes it some fifty times as slow: what ends after a time gets as much more."""

from blogapi.server import worker

try:
    from blogapi import wings as background
    from blogapi.server.app import app
except ImportError:  # an older checkout
    from blogapi.app import app

    from blogapi.webhooks import sender as background

try:
    from blogapi.storage import database
except ImportError:  # in 1.0.0
    from blogapi.storage import engine as database

__all__ = ["app"]

SLOWER = 50
worker.TURN_SECONDS *= SLOWER
database.GATHER_SECONDS *= SLOWER
database.SHARED_SECONDS *= SLOWER
background.SETTLE_SECONDS *= SLOWER
