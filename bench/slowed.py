"""The application under callgrind, which slows it down about fifty times: all time limits are raised accordingly.

The background work runs only once: how much of it a run would count depends on time.
"""

import math

from blogapi.server import commits
from blogapi.server.app import app
from blogapi.server.steps import STEPS

try:
    from blogapi.server import loop
except ImportError:  # an older checkout
    from blogapi.server import worker as loop

__all__ = ["app"]

SLOWER = 50
loop.TURN_SECONDS *= SLOWER
commits.GATHER_SECONDS *= SLOWER
commits.SHARED_SECONDS *= SLOWER
STEPS.update(dict.fromkeys(STEPS, math.inf))
