"""What a view works with."""

from flask import current_app

from blogapi.storage.engine import Database


def database() -> Database:
    """Return the application's database."""
    return current_app.extensions["database"]
