"""The application under callgrind, which slows it down about fifty times: all time limits are raised accordingly."""

from blogapi.server import commits
from blogapi.server.app import app

try:
    from blogapi.server import loop
except ImportError:  # an older checkout
    from blogapi.server import worker as loop
try:
    from blogapi.server import steps
except ImportError:  # an older checkout
    from blogapi import wings as steps

__all__ = ["app"]

SLOWER = 50
loop.TURN_SECONDS *= SLOWER
commits.GATHER_SECONDS *= SLOWER
commits.SHARED_SECONDS *= SLOWER
steps.INDEX_SECONDS *= SLOWER
