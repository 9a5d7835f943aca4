"""The owner's views of images: uploads, the list, and an image with the posts that use it."""

import re
from functools import partial
from pathlib import Path
from typing import Any

from flask import Blueprint, Response, g, render_template
from marshmallow import ValidationError
from werkzeug.exceptions import BadRequest

from blogapi.api.request import request
from blogapi.api.schemas import parameters, parsed_by
from blogapi.markdown import image_of
from blogapi.posts import storage as posts
from blogapi.wings.history import revisions
from blogapi.wings.images import storage as images
from blogapi.wings.images import uploads
from blogapi.wings.images.views import delete_unused, parse_image_cursor
from blogapi.wings.owner.frame import UPLOAD, asked, done, shows_errors
from blogapi.wings.owner.posts import title_by

IMAGES_PER_PAGE, MAX_SEARCHED_NAME = 12, 100  # images on a page, and maximum length of a search
CAMERA_NAME = re.compile(r"(?i)(img|dsc[fn]?|pxl|mvimg|dji|gopr|p|image|photo|screenshot)?[\W\d_]*")
list_query = parameters(before=parsed_by(parse_image_cursor, ""))
views = Blueprint("images", __name__)


@views.app_template_filter()
def as_markdown(image: images.StoredImage) -> str:
    """Return the Markdown that shows an image. The words of its name describe it, unless a camera chose the name."""
    name = re.sub("[-_]+", " ", Path(image.name).stem).strip()
    return image_of("" if CAMERA_NAME.fullmatch(name) else name, request.service.config.base_url + image.path)


def add_image() -> str:
    """Append the image chosen in the form, if any, to the content. If *Upload* was pressed, return the image's name."""
    if not g.images:
        if "upload" in g.form:
            raise ValidationError("choose an image first", "file")
        return ""
    image, _ = uploads.store_file(request, g.images[0])
    g.form["content"] = f"{g.form.get('content', '').rstrip()}\n\n{as_markdown(image)}\n".lstrip()
    return image.name if "upload" in g.form else ""


@views.get("/images")
def show_images() -> str:
    """Show a form to upload an image, and the images, newest first. A search shows only images with a matching name."""
    query = asked()
    name = query.pop("q", "")[:MAX_SEARCHED_NAME]
    page = images.page(request.database, IMAGES_PER_PAGE, **list_query.load(query), name=name)
    return render_template("owner/images.html", page=page)


@views.post(UPLOAD)
def upload_image() -> Response:
    """Store an image and redirect to its page, which shows the Markdown to use."""
    if not g.images:
        raise BadRequest("Choose an image first.")
    image, is_new = uploads.store_file(request, g.images[0])
    return done(f"/images/{image.id}", "was uploaded." if is_new else "was uploaded before.", image.name)


@views.get("/images/<image:image_id>")
def show_image(image_id: str, **shown: Any) -> str:
    """Show an image and where it is used."""
    image = images.get(request.database, image_id)
    uses = request.database.read_in_thread(request.client, images.uses_of, image_id)
    titles = {use: title_of(use) for use in uses}
    return render_template("owner/image.html", image=image, uses=titles, most=images.MAX_USES, **shown)


def title_of(use: images.Use) -> str:
    """Return the title of the post or version that uses an image, or "" for a new post."""
    find = partial(revisions.get_version, version=use.version) if use.version else posts.get
    return title_by(find, use.post_id) if use.post_id else ""


@views.post("/images/<image:image_id>/delete")
@shows_errors(show_image)
def delete_image(image_id: str) -> Response:
    return done("/images", "was deleted.", delete_unused(request, image_id).name)
