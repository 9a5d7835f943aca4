"""The gunicorn configuration, for starting `gunicorn` by hand in a checkout."""

from blogapi.server.gunicorn_conf import *
