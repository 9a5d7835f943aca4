"""The blueprint: the views of the core and of the wings around it."""

from flask import Blueprint

from blogapi.api import key
from blogapi.api.operations import CONVERTERS
from blogapi.config import Config
from blogapi.posts import views as posts
from blogapi.wings import cors, pages
from blogapi.wings.docs import views as docs
from blogapi.wings.history import views as history
from blogapi.wings.images import views as images
from blogapi.wings.micropub import views as micropub
from blogapi.wings.owner import install as owner
from blogapi.wings.proposals import views as proposals
from blogapi.wings.tags import views as tags
from blogapi.wings.webhooks import views as webhooks


def create_blueprint(config: Config) -> Blueprint:
    """Create the blueprint, in which the posts and each wing register their views."""
    blueprint = Blueprint("api", __name__)
    blueprint.record(lambda state: state.app.url_map.converters.update(CONVERTERS))
    key.register(blueprint)
    posts.register(blueprint)
    pages.register(blueprint)
    history.register(blueprint)
    proposals.register(blueprint)
    tags.register(blueprint)
    images.register(blueprint)
    webhooks.register(blueprint)
    docs.register(blueprint)
    micropub.register(blueprint)
    owner.register(blueprint)
    if config.cors_origins:
        cors.register(blueprint)
    return blueprint
