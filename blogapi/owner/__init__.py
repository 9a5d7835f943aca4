"""The owner's page, for a browser. A session takes the place of a key."""

from blogapi.owner import images, posts, preview, tags, views
from blogapi.owner.blueprint import blueprint

__all__ = ["blueprint", "images", "posts", "preview", "tags", "views"]
