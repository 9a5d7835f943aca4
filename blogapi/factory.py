"""Create the WSGI application from the views of the core and of the wings."""

import os
import time
from collections.abc import Callable

from flask import Blueprint, Flask

from blogapi import env_file
from blogapi.api.access import protect
from blogapi.api.application import Application
from blogapi.api.cors import cors
from blogapi.api.errors import errors
from blogapi.api.key import views as key_views
from blogapi.api.operations import CONVERTERS
from blogapi.api.service import EXTENSION, Service
from blogapi.config import Config
from blogapi.posts.admission import admit
from blogapi.posts.views import views as post_views
from blogapi.search import index
from blogapi.storage.database import Database
from blogapi.storage.engine import BLOCKING, Loop
from blogapi.webhooks.views import views as webhook_views
from blogapi.wings.docs.views import views as docs
from blogapi.wings.history.views import views as history_views
from blogapi.wings.images.views import views as image_views
from blogapi.wings.micropub.views import views as micropub
from blogapi.wings.owner.views import owner
from blogapi.wings.pages import views as pages
from blogapi.wings.proposals.views import views as proposal_views
from blogapi.wings.tags.views import views as tag_views

BLUEPRINTS = [
    *(errors, key_views, post_views, pages, history_views, proposal_views, tag_views, image_views, webhook_views),
    docs,  # To remove `docs` or a wing below it, delete the wing's line.
    micropub,
    owner,
]


def create_app(
    config: Config | None = None,
    clock: Callable[[], float] = time.time,
    loop: Loop = BLOCKING,
    database_class: type[Database] = Database,
) -> Flask:
    """Create the WSGI application. Without `config`, its settings come from the environment and the settings file.

    Opens the database, and sets it up if it is empty. Outside our server, where the loop is not cooperative, this also
    rebuilds a missing search index before it returns. Raises Unavailable.
    """
    if config is None:
        env_file.load()
        config = Config.from_environ(os.environ)
    app = Application("blogapi", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False  # OPTIONS gets 405, like every other unsupported method
    app.url_map.merge_slashes = False  # Otherwise, Flask would redirect /v1//posts, in HTML.
    app.extensions[EXTENSION] = service = Service.open(config, clock, loop, database_class)
    if not loop.is_cooperative:  # Our server rebuilds the index in the background.
        for _ in index.rebuild(service.database):
            pass
    app.url_map.converters.update(CONVERTERS)
    api = Blueprint("api", __name__)
    for blueprint in [*BLUEPRINTS, cors] if config.cors_origins else BLUEPRINTS:
        api.register_blueprint(blueprint)
    app.register_blueprint(api)
    protect(app, admit)
    return app
