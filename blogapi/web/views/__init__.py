"""The views: each loads its input, calls one function of the storage, and answers."""

from blogapi.web.operations import blueprint
from blogapi.web.views import images, pages, posts, webhooks

__all__ = ["blueprint", "images", "pages", "posts", "webhooks"]
