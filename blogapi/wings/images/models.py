"""The tables of images as Peewee models."""

from peewee import BlobField, CompositeKey, IntegerField, TextField

from blogapi.storage.models import BaseModel


class Image(BaseModel):
    """An image without its content."""

    id = TextField(primary_key=True)
    upload = TextField()
    name = TextField()
    type = TextField()
    bytes = IntegerField()
    width = IntegerField()
    height = IntegerField()
    created_at = TextField()


class ImagePart(BaseModel):
    """A part of the content of an image or an upload."""

    upload = TextField()
    number = IntegerField()
    content = BlobField()

    class Meta:
        primary_key = CompositeKey("upload", "number")
