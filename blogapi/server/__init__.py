"""How the application is served: the only package that knows of gunicorn and gevent."""
