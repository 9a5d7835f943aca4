"""The tables of images as Peewee models."""

from blogapi.storage.models import model

Image = model("image")
ImagePart = model("image_part")
FetchedImage = model("fetched_image")
