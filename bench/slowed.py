"""The application under callgrind, which slows it down about fifty times: all time limits are raised accordingly.

The background work runs only when a request to /settle asks for it, so that each run counts the same work.
"""

import math
import time

from flask import Response

try:  # an older checkout
    from blogapi.server.app import app
except ImportError:
    from blogapi.server.handler import load

    app = load()
try:
    from blogapi.server import fairness, threads
except ImportError:  # 1.3.0
    from blogapi.server import commits as threads
    from blogapi.server import loop as fairness

__all__ = ["app"]

SLOWER = 50
fairness.TURN_SECONDS *= SLOWER
threads.GATHER_SECONDS *= SLOWER
threads.SHARED_SECONDS *= SLOWER
# It tells when to look for due posts, once a second: otherwise, the counts would depend on the load.
vars(app.extensions["blogapi"])["clock"] = lambda: time.time() / SLOWER  # In 1.3.0, it is frozen.
background = app.extensions["background"]
steps = background._steps
steps.update(dict.fromkeys(steps, math.inf))


@app.get("/settle")
def settle() -> Response:
    """Run the last background step, which updates the search index after earlier writes."""
    *_, last = steps
    last(*([] if hasattr(last, "__self__") else [background]))  # in an older checkout, steps are functions
    return Response()
