"""The views of the API, and the wings around its core."""

from blogapi.api.operations import blueprint
from blogapi.docs import views as docs
from blogapi.images import views as images
from blogapi.micropub import blueprint as micropub
from blogapi.owner import blueprint as owner
from blogapi.posts import views as posts
from blogapi.webhooks import views as webhooks

__all__ = ["blueprint", "docs", "images", "posts", "webhooks"]

blueprint.register_blueprint(micropub)
blueprint.register_blueprint(owner)
