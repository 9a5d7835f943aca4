"""The blueprint of Micropub, and its errors."""

from flask import Blueprint, Response

from blogapi.api.request import JSON
from blogapi.posts.documents import dump

WORDS = {401: "unauthorized", 429: "too_many_requests", 500: "server_error", 503: "temporarily_unavailable"}
# Here, a key without the permission gets 401, and a post that is not found is an invalid request.
STATUSES = {403: (401, "insufficient_scope"), 404: (400, "invalid_request")}

blueprint = Blueprint("micropub", __name__, template_folder="templates")


@blueprint.after_request
def finish(response: Response) -> Response:
    """Give an error the form that the Recommendation has (3.7.2)."""
    status = response.status_code
    if status >= 400 and response.mimetype == JSON:
        code, word = STATUSES.get(status, (status, WORDS.get(status, "invalid_request")))
        response.status_code = code
        response.set_data(f"{dump({'error': word, 'error_description': response.json['message']})}\n")
    return response
