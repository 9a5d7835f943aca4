"""Read Markdown files in requests, and send them in responses."""

import json
import re
from typing import Any

from flask import Response
from werkzeug.datastructures import MIMEAccept
from werkzeug.exceptions import BadRequest
from werkzeug.http import parse_accept_header

from blogapi.api.operations import JSON, MARKDOWN
from blogapi.api.request import Request
from blogapi.api.responses import Pairs, document_response, tagged_response
from blogapi.documents import etags
from blogapi.markdown.files import ReadOptions, parse, render
from blogapi.markdown.front_matter import MarkdownError

POST_TYPES = (JSON, MARKDOWN)  # the media types in which a post is available
NO_BREAK = "body: has no line break: end even a single line with one; curl keeps them with --data-binary, not with -d"
CHARSET = re.compile(r';[ \t]*charset="?utf-?8"?')  # ignored, because files are always UTF-8


def parse_file(request: Request) -> dict[str, Any]:
    """Return the fields in the Markdown file in the body, without validating them. Raises BadRequest."""
    if lost_line_breaks(request):
        raise BadRequest(NO_BREAK)
    try:
        options = ReadOptions(None, "unknown" in request.query, request.service.config.timezone)
        request.file = parse(request.body, options)
    except MarkdownError as error:
        raise BadRequest(f"body: {error}") from None
    return request.file.fields


def lost_line_breaks(request: Request) -> bool:
    """Return whether the body has probably lost its line breaks, as after `curl -d`."""
    body = request.body.removeprefix(b"\xef\xbb\xbf").lstrip(b" ")
    is_curl = request.environ.get("HTTP_USER_AGENT", "curl").startswith("curl")
    beginnings = (b"---", b"+++", b"# ") if is_curl else (b"---", b"+++")  # Other clients may send only a heading.
    return body.startswith(beginnings) and b"\n" not in body and b"\r" not in body


def post_or_file_response(request: Request, document: bytes, headers: Pairs = ()) -> Response:
    """Return a post as JSON or, if the client prefers it, as a Markdown file with a different ETag."""
    if not prefers_markdown(request):
        return document_response(request, document, headers=headers, vary="Accept")
    fields = json.loads(document)
    headers = [("Content-Disposition", f'inline; filename="{fields["slug"]}.md"'), *headers]
    _, tag = etags(document)
    return tagged_response(request, render(fields), tag, "text/markdown; charset=utf-8", headers, vary="Accept")


def prefers_markdown(request: Request) -> bool:
    """Return whether the client prefers Markdown to JSON (RFC 9110, section 12.5.1), even if it also accepts `*/*`."""
    header = request.environ.get("HTTP_ACCEPT", "").lower()
    if "text/" not in header and ";" not in header:  # true for most requests
        return False
    return parse_accept_header(CHARSET.sub("", header), MIMEAccept).best_match([JSON, MARKDOWN]) == MARKDOWN
