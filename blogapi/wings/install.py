"""The wings around the core: each registers its views in the application, in this order."""

from flask import Flask

from blogapi.api.operations import CONVERTERS
from blogapi.config import Config
from blogapi.posts import views as posts
from blogapi.wings import cors, pages
from blogapi.wings.docs import views as docs
from blogapi.wings.history import views as history
from blogapi.wings.images import views as images
from blogapi.wings.micropub import views as micropub
from blogapi.wings.owner import install as owner
from blogapi.wings.tags import views as tags
from blogapi.wings.webhooks import views as webhooks


def install(app: Flask, config: Config) -> None:
    """Register the wings in an application."""
    if config.cors_origins:
        cors.install(app)
    app.url_map.converters.update(CONVERTERS)
    pages.register(app)
    posts.register(app)
    history.register(app)
    tags.register(app)
    images.register(app)
    webhooks.register(app)
    docs.register(app)
    micropub.register(app)
    owner.register(app)
