"""The views: each loads its input, calls one function of the storage, and answers."""

from blogapi.web.application import blueprint
from blogapi.web.views import history, pages, posts, webhooks

__all__ = ["blueprint", "history", "pages", "posts", "webhooks"]
