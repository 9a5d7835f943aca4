"""The addresses of Micropub and of posts."""

import re
from typing import Any

from werkzeug.exceptions import BadRequest

from blogapi.api.request import Request
from blogapi.posts.storage import Fields, PostRef

MICROPUB, MEDIA = "/micropub", "/micropub/media"


def public(request: Request, path: str) -> str:
    """Return the URL of a path of the service."""
    return request.service.config.base_url + path


def url_of(request: Request, post: Fields) -> str:
    """Return the address of a post: on the site, or else in the API."""
    return request.service.config.url_on_site(post) or public(request, f"/v1/posts/{post['id']}")


def ref_of(request: Request, url: Any) -> PostRef:
    """Return the post that a URL leads to: on the site, or by id or slug in the API. Raises BadRequest."""
    path = re.sub(r"[?#].*", "", url if isinstance(url, str) else "", flags=re.DOTALL).rstrip("/")
    own = public(request, "/v1/posts/")
    for template in (request.service.config.post_url, f"{own}{{id}}", f"{own}by-slug/{{slug}}"):
        pattern = re.escape(template.rstrip("/")).replace(r"\{slug\}", "(?P<slug>[a-z0-9-]{1,100})")
        match = template and re.fullmatch(pattern.replace(r"\{id\}", "(?P<id>[1-9][0-9]{0,17})"), path)
        if match:
            return int(match["id"]) if "id" in match.groupdict() else match["slug"]
    raise BadRequest("url: must be the address of a post")
