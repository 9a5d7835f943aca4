"""The wings around the core, and where it meets them: their views, each in one line."""

from blogapi.api.operations import blueprint
from blogapi.docs import views as docs
from blogapi.history import views as history
from blogapi.images import views as images
from blogapi.micropub import views as micropub
from blogapi.owner import images as owner_images
from blogapi.owner import posts as owner_posts
from blogapi.owner import preview, views
from blogapi.owner import tags as owner_tags
from blogapi.posts import views as posts
from blogapi.tags import views as tags
from blogapi.webhooks import views as webhooks

API = (posts, history, tags, images, webhooks, docs)  # importing them registers their operations
OWNER = (views, owner_posts, owner_images, owner_tags, preview)

blueprint.register_blueprint(micropub.blueprint)
blueprint.register_blueprint(views.blueprint)
