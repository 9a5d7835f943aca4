"""The gunicorn configuration for a checkout, in which `gunicorn` finds this file by its name."""

from blogapi.server.gunicorn_conf import *
