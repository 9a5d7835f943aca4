"""The operations: each loads what the request carries, calls one method of a model, and answers."""

from blogapi.views import pages, posts, tags, webhooks
from blogapi.views.guard import blueprint

__all__ = ["blueprint", "pages", "posts", "tags", "webhooks"]
