"""Runs every operation with the client that openapi-python-client generates."""

import base64
import io
import os
from importlib import import_module

from blogclient import AuthenticatedClient
from blogclient.models import (
    Error,
    EventType,
    ListPostsFieldsItem,
    NewPost,
    PostChange,
    PostInput,
    Status,
    TagChange,
    Upload,
    WebhookChange,
    WebhookInput,
)
from blogclient.types import File

client = AuthenticatedClient(os.environ["BASE"], os.environ["KEY"], raise_on_unexpected_status=True)


def do(operation, *path, **arguments):
    """Run an operation, named by its tag and its id; return the answer."""
    module = import_module(f"blogclient.api.{operation}")
    answer = module.sync_detailed(*path, client=client, **arguments).parsed
    assert not isinstance(answer, Error), answer
    return answer


post = do("posts.create_post", body=NewPost("Käse", "Words.", tags=["a", "b"]))
assert do("posts.get_post", post.id) == do("posts.get_post_by_slug", post.slug) == post
post = do("posts.change_post", post.id, body=PostChange(status=Status.PUBLISHED, excerpt=None))
do("posts.change_post_by_slug", post.slug, body=PostChange(excerpt="Short."))
do("posts.replace_post", post.id, body=PostInput("Käse", "Words.", tags=["a", "b"], slug=post.slug, excerpt="Short."))
for end, ref in (("", post.id), ("_by_slug", post.slug)):
    proposal = do(f"posts.propose_change{end}", ref, body=PostChange(excerpt=f"Proposed{end}."))
    assert do("proposals.list_all_proposals") == do(f"posts.list_proposals{end}", ref) == [proposal]
    assert do(f"posts.get_proposal{end}", ref, proposal.id) == proposal
    assert do(f"posts.apply_proposal{end}", ref, proposal.id).excerpt == f"Proposed{end}."
    again = do(f"posts.propose_change{end}", ref, body=PostChange(excerpt="Short."))
    do(f"posts.delete_proposal{end}", ref, again.id)
do("posts.change_post", post.id, body=PostChange(excerpt="Short."))
assert (do("key.get_key").name, do("key.get_key").scope) == ("first", "full")
do("posts.put_post", "other", body=PostInput("Other", "Words.", status=Status.ARCHIVED))
(found,) = do("posts.list_posts", limit=1, status=Status.PUBLISHED, tag="a", before="99")
assert (found.excerpt, found.published_at) == ("Short.", post.published_at)
names = [ListPostsFieldsItem.SLUG, ListPostsFieldsItem.TAGS]
(found,) = do("posts.list_posts", limit=1, tag="a", fields=names)
assert (found.slug, found.tags) == (post.slug, post.tags)
assert [tag.name for tag in do("tags.list_tags", limit=9)] == ["a", "b"]
assert do("tags.get_tag", "a").posts == 1
do("tags.change_tag", "a", body=TagChange("c"))
do("tags.delete_tag", "b")
newest, *_ = do("posts.list_revisions", post.id)
assert do("posts.list_revisions_by_slug", post.slug, limit=1) == [newest]
old = do("posts.get_revision", post.id, newest.revision)
assert do("posts.get_revision_by_slug", post.slug, newest.revision) == old
assert do("posts.restore_revision", post.id, newest.revision).content == old.content
do("posts.restore_revision_by_slug", post.slug, newest.revision)
do("posts.delete_post", post.id)
do("posts.delete_post_by_slug", "other")
assert {entry.post.id for entry in do("trash.list_trash")} == {post.id, "2"}
assert do("trash.get_trashed_post", post.id).title == do("trash.restore_trashed_post", post.id).title
do("trash.delete_trashed_post", "2")
webhook = do("webhooks.create_webhook", body=WebhookInput("http://127.0.0.1:1/"))
assert webhook.secret.startswith("whsec_")
assert do("webhooks.list_webhooks") == [do("webhooks.get_webhook", webhook.id)]
do("webhooks.change_webhook", webhook.id, body=WebhookChange(events=[EventType.POST_PUBLISHED, EventType.PING]))
delivery = do("webhooks.ping_webhook", webhook.id)
assert [each.id for each in do("webhooks.list_deliveries", webhook.id)] == [delivery.id]
do("webhooks.redeliver", webhook.id, delivery.id)
do("webhooks.delete_webhook", webhook.id)
gif = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
image = do("images.create_image", body=Upload(File(io.BytesIO(gif), "dot.gif", "image/gif")))
assert (image.name, image.width, image.height) == ("dot.gif", 1, 1)
assert do("images.get_image", image.id) == image
assert do("images.list_images", limit=1) == [image]
do("images.delete_image", image.id)
