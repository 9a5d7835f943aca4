"""The application in callgrind, which makes it some fifty times as slow: what ends after a time gets as much more."""

from blogapi.app import app
from blogapi.server import worker
from blogapi.storage import engine
from blogapi.webhooks import sender

__all__ = ["app"]

SLOWER = 50
worker.TURN_SECONDS *= SLOWER
engine.GATHER_SECONDS *= SLOWER
engine.SHARED_SECONDS *= SLOWER
sender.SETTLE_SECONDS *= SLOWER
