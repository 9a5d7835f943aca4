"""The shapes on the wire: what a request may carry, and what is answered and sent."""

from typing import Any

from marshmallow import RAISE, Schema, fields, pre_load
from marshmallow.validate import Length

from blogapi.fields import (
    DELIVERY_ID,
    EVENTS,
    ID,
    POST_EVENTS,
    SLUG,
    STATUSES,
    URL,
    URL_HINT,
    Choice,
    Events,
    Flag,
    Moment,
    PostId,
    Tag,
    Tags,
    Text,
    Whole,
)

MAX_LIMIT = 1000


class StrictSchema(Schema):
    """A schema that refuses what it does not know, in our words."""

    class Meta:
        unknown = RAISE

    error_messages = {"unknown": "unknown field"}


class Nothing(StrictSchema):
    """An object without fields."""


class NewPost(StrictSchema):
    """The body of POST /posts."""

    title = Text(255, least=1, one_line=True, visible=True, required=True)
    content = Text(1_000_000, visible=True, required=True)
    excerpt = Text(1000)
    slug = Text(100, pattern=SLUG, hint="must be lower-case letters a-z, digits and single hyphens between them")
    status = Choice("published", "draft", load_default="draft")
    tags = Tags(50, load_default=dict)
    cover_image = Text(2048, pattern=URL, hint=URL_HINT)

    @pre_load
    def drop_empty(self, data: Any, **kwargs: Any) -> Any:
        """Take "" for left out where a field is optional: it is what an unset shell variable gives."""
        optional = ("excerpt", "slug", "cover_image")
        return {name: value for name, value in data.items() if value != "" or name not in optional}


class PostChange(NewPost):
    """The body of PATCH /posts/{id} (RFC 7396): what is left out stays, null clears where that is allowed."""

    excerpt = Text(1000, allow_none=True)
    status = Choice(*STATUSES)
    tags = Tags(50, allow_none=True)
    cover_image = Text(2048, pattern=URL, hint=URL_HINT, allow_none=True)
    published_at = Moment()


class TagChange(StrictSchema):
    """The body of PATCH /tags/{name}."""

    name = Text(64, least=1, one_line=True, visible=True, required=True)
    merge = Flag(load_default=False)


class TagAnswer(StrictSchema):
    """A tag, as it is answered."""

    name = Text(64, least=1, one_line=True, visible=True, required=True)
    posts = fields.Integer(required=True, strict=True, metadata={"minimum": 1})


class Post(StrictSchema):
    """A post, as it is answered."""

    id = PostId(required=True)
    title = Text(255, least=1, one_line=True, visible=True, required=True)
    status = Choice(*STATUSES, required=True)
    slug = Text(100, pattern=SLUG, required=True)
    content = Text(1_000_000, visible=True, required=True)
    excerpt = Text(1000)
    tags = Tags(50, required=True)
    cover_image = Text(2048, pattern=URL)
    published_at = fields.AwareDateTime(format="iso")
    created_at = fields.AwareDateTime(format="iso", required=True)


class NewWebhook(StrictSchema):
    """The body of POST /webhooks."""

    url = Text(2048, least=1, pattern=URL, hint=URL_HINT, required=True)
    events = Events(load_default=EVENTS)


class WebhookChange(StrictSchema):
    """The body of PATCH /webhooks/{webhook_id} (RFC 7396): what is left out stays."""

    url = Text(2048, least=1, pattern=URL, hint=URL_HINT)
    events = Events()
    active = Flag()


class Webhook(StrictSchema):
    """A webhook, as it is answered."""

    id = Text(19, least=1, pattern=ID, required=True)
    url = Text(2048, least=1, pattern=URL, required=True)
    events = Events(required=True)
    active = Flag(required=True)
    created_at = fields.AwareDateTime(format="iso", required=True)


class CreatedWebhook(Webhook):
    """A webhook, as it is answered once: with its secret."""

    secret = Text(50, least=50, pattern="whsec_[A-Za-z0-9+/]{43}=", required=True)


class Delivery(StrictSchema):
    """What became, or is to become, of an event at a webhook, as it is answered."""

    id = Text(26, least=26, pattern=DELIVERY_ID, required=True)
    event = Choice(*EVENTS, required=True)
    created_at = fields.AwareDateTime(format="iso", required=True)
    state = Choice("pending", "delivered", "failed", required=True)
    attempts = fields.Integer(required=True, strict=True, metadata={"minimum": 0})
    last_status = fields.Integer(strict=True, metadata={"minimum": 100, "maximum": 999})
    last_error = fields.String()
    next_attempt_at = fields.AwareDateTime(format="iso")


class PostData(StrictSchema):
    """What an event of a post tells: the post without its content."""

    post = fields.Nested(Post(exclude=["content"]), required=True)


class PostEvent(StrictSchema):
    """What a receiver is sent when something has happened to a post."""

    type = Choice(*POST_EVENTS, required=True)
    timestamp = fields.AwareDateTime(format="iso", required=True)
    data = fields.Nested(PostData, required=True)


class Ping(StrictSchema):
    """What a receiver is sent on request, to see whether it is there."""

    type = Choice("ping", required=True)
    timestamp = fields.AwareDateTime(format="iso", required=True)
    data = fields.Nested(Nothing, required=True)


class Error(StrictSchema):
    """The body of every error."""

    error = fields.Integer(required=True, strict=True, metadata={"description": "The HTTP status."})
    message = fields.String(required=True, validate=Length(max=500))


class NoQuery(StrictSchema):
    """The query of an operation that has no parameters."""

    error_messages = {"unknown": "unknown parameter"}


class ListQuery(NoQuery):
    """The query of GET /posts."""

    limit = Whole(MAX_LIMIT, load_default=100)
    status = Choice(*STATUSES)
    tag = Tag()
    before = PostId()
