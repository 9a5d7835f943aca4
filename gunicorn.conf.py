"""The configuration of gunicorn, for those who start it by hand in a checkout: `gunicorn`."""

from blogapi.server.gunicorn_conf import *
