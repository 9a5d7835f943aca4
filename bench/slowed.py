"""The application in callgrind, which makes it some fifty times as slow: what ends after a time gets as much more."""

from blogapi.server import worker

try:
    from blogapi import wings as background
    from blogapi.server.app import app
except ImportError:  # an older checkout
    from blogapi.app import app

    from blogapi.webhooks import sender as background

try:
    from blogapi.server import commits
except ImportError:  # an older checkout
    from blogapi.storage import database as commits

__all__ = ["app"]

SLOWER = 50
worker.TURN_SECONDS *= SLOWER
commits.GATHER_SECONDS *= SLOWER
commits.SHARED_SECONDS *= SLOWER
background.SETTLE_SECONDS *= SLOWER
