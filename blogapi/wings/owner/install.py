"""The owner's page as a whole: its views, in their common frame."""

import json

from flask import Blueprint

from blogapi.api.access import guards_itself
from blogapi.posts import due_requests
from blogapi.wings.markdown.files import block
from blogapi.wings.owner import frame, images, posts, preview, proposals, tags, views, webhooks, writing
from blogapi.wings.owner.diff import marked
from blogapi.wings.owner.fields import LABELS, MORE_FIELDS

owner = guards_itself(Blueprint("owner", __name__, url_prefix=frame.ROOT, template_folder="templates"))
owner.before_request(frame.check_session)
owner.before_request(due_requests.publish_before_request)
owner.after_request(frame.finish)
owner.teardown_request(frame.close_image)
owner.context_processor(frame.context)
for module in (views, posts, proposals, writing, images, tags, webhooks, preview):
    owner.register_blueprint(module.views)
for path in ("", "/"):
    owner.add_url_rule(path, "unknown", frame.unknown, methods=frame.UNSAFE_METHODS)
owner.add_url_rule("/<path:path>", "unknown", frame.unknown, methods=["GET", *frame.UNSAFE_METHODS])
owner.add_app_template_filter(json.loads, "from_json")
owner.add_app_template_filter(block, "yaml")
owner.add_app_template_filter(marked)
owner.record(lambda state: state.app.jinja_env.globals.update(labels=LABELS, more_fields=MORE_FIELDS))
