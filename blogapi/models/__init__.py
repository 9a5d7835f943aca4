"""The tables of schema.sql as Peewee models, and every query."""

from blogapi.models.base import BaseModel
from blogapi.models.keys import ApiKey
from blogapi.models.posts import Idempotency, Post, Schedule
from blogapi.models.tags import PostTag, Tag
from blogapi.models.webhooks import Delivery, Event, Webhook

__all__ = [
    "ApiKey",
    "BaseModel",
    "Delivery",
    "Event",
    "Idempotency",
    "Post",
    "PostTag",
    "Schedule",
    "Tag",
    "Webhook",
]
