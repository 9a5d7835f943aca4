"""The tables of the history as Peewee models."""

from blogapi.storage.models import model

Revision = model("revision")
Retagging = model("retagging")
Purge = model("purge")
