"""The owner's page: a room of its own, for a browser, entered by a session in place of a key."""

from blogapi.web.settings import views
from blogapi.web.settings.blueprint import blueprint

__all__ = ["blueprint", "views"]
