"""Create the API's blueprint from the views of the core and of the wings around it."""

from flask import Blueprint

from blogapi.api.errors import errors
from blogapi.api.key import views as key
from blogapi.config import Config
from blogapi.posts.views import views as posts
from blogapi.wings.cors import cors
from blogapi.wings.docs.views import views as docs
from blogapi.wings.history.views import views as history
from blogapi.wings.images.views import views as images
from blogapi.wings.micropub.views import views as micropub
from blogapi.wings.owner.views import owner
from blogapi.wings.pages import views as pages
from blogapi.wings.proposals.views import views as proposals
from blogapi.wings.tags.views import views as tags
from blogapi.wings.webhooks.views import views as webhooks

BLUEPRINTS = [
    *(errors, key, posts, pages, history, proposals, tags, images, webhooks),
    docs,  # To remove `docs` or a wing below it, delete the wing's line.
    micropub,
    owner,
]


def create_blueprint(config: Config) -> Blueprint:
    api = Blueprint("api", __name__)
    for blueprint in [*BLUEPRINTS, cors] if config.cors_origins else BLUEPRINTS:
        api.register_blueprint(blueprint)
    return api
