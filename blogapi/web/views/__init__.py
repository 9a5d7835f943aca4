"""The views: each loads what the request carries, calls one function of the storage, and answers."""

from blogapi.web.blueprint import blueprint
from blogapi.web.views import pages, posts, tags, webhooks

__all__ = ["blueprint", "pages", "posts", "tags", "webhooks"]
