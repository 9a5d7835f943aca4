"""The server: the only package that imports gunicorn and gevent."""
