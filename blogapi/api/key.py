"""Tell clients about the key that they use."""

from flask import Response
from marshmallow import fields

from blogapi.api.operations import ResponseSpec
from blogapi.api.request import Request
from blogapi.api.responses import json_response
from blogapi.api.schemas import StrictSchema, doc
from blogapi.api.views import Views
from blogapi.storage.models import FULL, SCOPES

views = Views("key", __name__)


class KeySchema(StrictSchema):
    """An API key: its name, and what it may do."""

    example = {"name": "laptop", "scope": FULL}
    name = fields.String(required=True, **doc("The name that the owner gave the key."))
    scope = fields.String(required=True, **doc("What the key may do.", examples=list(SCOPES)))


@views.operation("GET /v1/key", ResponseSpec(200, "The key.", KeySchema()), scopes=SCOPES)
def get_key(request: Request) -> Response:
    """Get the name and scope of the key that made the request."""
    assert request.key  # The guard requires a key.
    return json_response(request, {"name": request.key.name, "scope": request.key.scope})
