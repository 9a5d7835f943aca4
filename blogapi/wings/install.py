"""The wings around the core: their views are registered in the application here."""

from flask import Flask

from blogapi.api.operations import blueprint
from blogapi.config import Config
from blogapi.posts import views as post_views
from blogapi.wings import cors, pages
from blogapi.wings.docs import views as docs_views
from blogapi.wings.history import views as history_views
from blogapi.wings.images import views as image_views
from blogapi.wings.micropub import views as micropub_views
from blogapi.wings.owner import images as owner_images
from blogapi.wings.owner import posts as owner_posts
from blogapi.wings.owner import preview as owner_preview
from blogapi.wings.owner import tags as owner_tags
from blogapi.wings.owner import views as owner_views
from blogapi.wings.owner import webhooks as owner_webhooks
from blogapi.wings.tags import views as tag_views
from blogapi.wings.webhooks import views as webhook_views

# These modules register their views when they are imported.
VIEWS = (
    pages,
    post_views,
    history_views,
    tag_views,
    image_views,
    webhook_views,
    docs_views,
    *(owner_views, owner_posts, owner_images, owner_tags, owner_webhooks, owner_preview),
)

blueprint.register_blueprint(micropub_views.blueprint)
blueprint.register_blueprint(owner_views.blueprint)


def install(app: Flask, config: Config) -> None:
    """Register the wings in an application."""
    if config.cors_origins:
        cors.install(app)
    app.register_blueprint(blueprint)
