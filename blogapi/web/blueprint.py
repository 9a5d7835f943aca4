"""The blueprint of the views outside the owner's page, and the converters of their paths."""

from flask import Blueprint
from flask.blueprints import BlueprintSetupState
from werkzeug.routing import BaseConverter

from blogapi.post import CONTROL_OR_BREAK, ID, SLUG, WHITE_SPACE, fold
from blogapi.storage.models import MAX_ID
from blogapi.web.schemas.webhooks import DELIVERY_ID

blueprint = Blueprint("api", __name__)


class IdConverter(BaseConverter):
    """An id, only in the form that the service writes; anything else matches nothing."""

    regex = ID
    described = ("The id, as the service gave it.", {"type": "string", "pattern": f"^{ID}$"})

    def to_python(self, value: str) -> int:
        return int(value) if int(value) <= MAX_ID else 0  # which nothing has


class SlugConverter(BaseConverter):
    """The slug of a post; any other text matches nothing."""

    described = ("The slug: at most 100 characters.", {"type": "string", "pattern": f"^{SLUG}$", "maxLength": 100})


class DeliveryIdConverter(BaseConverter):
    """The id of a delivery."""

    described = (
        "The id of the delivery, which is its `webhook-id`.",
        {"type": "string", "pattern": f"^{DELIVERY_ID}$"},
    )


class TagConverter(BaseConverter):
    """A tag, which may have slashes. It is folded."""

    regex = r"[\s\S]+"
    part_isolating = False
    described = ("The name, percent-encoded; letter case does not matter.", {"type": "string", "minLength": 1})

    def to_python(self, value: str) -> str:
        return "" if CONTROL_OR_BREAK.search(value) else fold(value.strip(WHITE_SPACE))  # No post carries "".


CONVERTERS = {"id": IdConverter, "slug": SlugConverter, "delivery_id": DeliveryIdConverter, "tag": TagConverter}


@blueprint.record
def add_converters(state: BlueprintSetupState) -> None:
    """Register the converters."""
    state.app.url_map.converters.update(CONVERTERS)
