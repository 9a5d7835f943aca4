"""Does every operation with the client that openapi-python-client makes."""

import base64
import io
import os

from blogclient import AuthenticatedClient
from blogclient.api.images import create_image, delete_image, get_image, list_images
from blogclient.api.posts import (
    change_post,
    change_post_by_slug,
    create_post,
    delete_post,
    delete_post_by_slug,
    get_post,
    get_post_by_slug,
    get_revision,
    get_revision_by_slug,
    list_posts,
    list_revisions,
    list_revisions_by_slug,
    put_post,
    restore_revision,
    restore_revision_by_slug,
)
from blogclient.api.tags import change_tag, delete_tag, get_tag, list_tags
from blogclient.api.trash import delete_trashed_post, get_trashed_post, list_trash, restore_trashed_post
from blogclient.api.webhooks import (
    change_webhook,
    create_webhook,
    delete_webhook,
    get_webhook,
    list_deliveries,
    list_webhooks,
    ping_webhook,
    redeliver,
)
from blogclient.models import (
    Error,
    EventType,
    PostChange,
    PostInput,
    PutPost,
    Status,
    TagChange,
    Upload,
    WebhookChange,
    WebhookInput,
)
from blogclient.types import File

client = AuthenticatedClient(os.environ["BASE"], os.environ["KEY"], raise_on_unexpected_status=True)


def do(operation, *path, **arguments):
    """Do an operation; return what is answered."""
    answer = operation.sync_detailed(*path, client=client, **arguments).parsed
    assert not isinstance(answer, Error), answer
    return answer


post = do(create_post, body=PostInput("Käse", "Words.", tags=["a", "b"]))
assert do(get_post, post.id) == do(get_post_by_slug, post.slug) == post
post = do(change_post, post.id, body=PostChange(status=Status.PUBLISHED, excerpt=None))
do(change_post_by_slug, post.slug, body=PostChange(excerpt="Short."))
do(put_post, "other", body=PutPost("Other", "Words.", status=Status.ARCHIVED))
(found,) = do(list_posts, limit=1, status=Status.PUBLISHED, tag="a", before="99")
assert (found.excerpt, found.published_at) == ("Short.", post.published_at)
assert [tag.name for tag in do(list_tags, limit=9)] == ["a", "b"]
assert do(get_tag, "a").posts == 1
do(change_tag, "a", body=TagChange("c"))
do(delete_tag, "b")
newest, _ = do(list_revisions, post.id)
assert do(list_revisions_by_slug, post.slug, limit=1) == [newest]
old = do(get_revision, post.id, newest.revision)
assert do(get_revision_by_slug, post.slug, newest.revision) == old
assert do(restore_revision, post.id, newest.revision).content == old.content
do(restore_revision_by_slug, post.slug, newest.revision)
do(delete_post, post.id)
do(delete_post_by_slug, "other")
assert {entry.post.id for entry in do(list_trash)} == {post.id, "2"}
assert do(get_trashed_post, post.id).title == do(restore_trashed_post, post.id).title
do(delete_trashed_post, "2")
webhook = do(create_webhook, body=WebhookInput("http://127.0.0.1:1/"))
assert webhook.secret.startswith("whsec_")
assert do(list_webhooks) == [do(get_webhook, webhook.id)]
do(change_webhook, webhook.id, body=WebhookChange(events=[EventType.POST_PUBLISHED, EventType.PING]))
delivery = do(ping_webhook, webhook.id)
assert [each.id for each in do(list_deliveries, webhook.id)] == [delivery.id]
do(redeliver, webhook.id, delivery.id)
do(delete_webhook, webhook.id)
gif = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
image = do(create_image, body=Upload(File(io.BytesIO(gif), "dot.gif", "image/gif")))
assert (image.name, image.width, image.height) == ("dot.gif", 1, 1)
assert do(get_image, image.id) == image
assert do(list_images, limit=1) == [image]
do(delete_image, image.id)
