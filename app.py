"""The WSGI application that gunicorn serves."""

from blogapi import create_app

app = create_app()
