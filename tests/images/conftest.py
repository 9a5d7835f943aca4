"""Uploads for the tests of images."""

import pytest

from tests.images.pictures import jpeg


def upload(client, content, name="loaf.jpg", before=""):
    head = f'{before}--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    form = head.encode() + content + b"\r\n--b--\r\n"
    return client.post("/v1/images", data=form, content_type="multipart/form-data; boundary=b")


def send(client, content, content_type="image/jpeg", query="?name=loaf.jpg"):
    return client.post(f"/v1/images{query}", data=content, content_type=content_type)


@pytest.fixture
def image(client):
    """An uploaded image."""
    return upload(client, jpeg()).json
