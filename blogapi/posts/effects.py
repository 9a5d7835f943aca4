"""Update everything that a change to a post affects: history, slugs, tags, the search index and events.

The effects run once for each change, before the post's row is written, because the history copies the old row.
There is one exception: if a due post is damaged, its publication time is removed without any effects.
"""

from collections.abc import Callable
from typing import Any, Literal

from blogapi.posts import history, proposal_rows, slugs, tag_rows
from blogapi.search import index
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import NotPermitted
from blogapi.storage.models import Author
from blogapi.webhooks import storage as webhooks

Fields = dict[str, Any]
# What a change did to a post. "unchanged" means that it had no effect: a PATCH still sends `post.updated`, as
# docs/webhooks.md promises for every PATCH, whereas a PUT writes nothing. "published" means that the scheduled time
# came, and "purged" that the post was deleted for good.
Outcome = Literal["created", "updated", "unchanged", "published", "deleted", "purged"]
EVENT_TYPES = {
    "created": "post.created",
    "updated": "post.updated",
    "unchanged": "post.updated",
    "deleted": "post.deleted",
    "purged": "post.deleted",
}
KEPT: dict[str, history.RevisionState] = {"updated": "replaced", "deleted": "deleted"}  # state of the revision to store


def check_permitted(author: Author, *versions: Fields) -> None:
    """Raise NotPermitted if the author may only write drafts, and one of the versions is not a draft. Ignores {}."""
    if author.drafts_only:
        for version in filter(None, versions):
            if version["status"] != "draft":
                raise NotPermitted(f"this post is {version['status']}, or would be")


def run(
    tx: Transaction,
    outcome: Outcome,
    post_id: int,
    old: Fields,  # {} for a new post
    new: Fields,  # {} for a deleted post
    author: Author,
    version: int = 0,  # the version of `old`
    *,
    with_events: bool = True,  # False for an import, and for a PUT without effect
) -> None:
    """Run all side effects of a change to a post. Raises NotPermitted before anything is written."""
    check_permitted(author, old, new)
    if author.drafts_only and outcome == "purged":
        raise NotPermitted("a draft can be moved to the trash, but not deleted for good")
    if outcome == "purged" or (outcome == "deleted" and not tx.keeps_history):
        purge(tx, post_id)
    elif outcome in KEPT and tx.keeps_history:
        history.add_revision(tx, post_id, version, author.name, KEPT[outcome])
    slugs.change_former(tx, post_id, old, new)
    tag_rows.change(tx, old, new)
    index.update(tx, post_id, old, new)
    if with_events:
        webhooks.record(tx, {"post": new or old}, *_events(outcome, old, new))


def purge(tx: Transaction, post_id: int) -> None:
    """Delete the history and the proposals of a post that is deleted for good."""
    history.purge(tx, post_id)
    proposal_rows.purge(tx, post_id)


def run_for_retagging(tx: Transaction, post_id: int, old: Fields, new: Fields, author: Author) -> None:
    """Record that a site-wide tag change touched this post; the event is sent for the tag, not for the post."""
    check_permitted(author, old, new)
    if tx.keeps_history:
        history.add_retagging(tx, post_id, author.name, old["tags"])
    index.update(tx, post_id, old, new)


def run_for_damaged(tx: Transaction, post_id: int, author: Author) -> None:
    """Clean up after deleting a post with a corrupt document, whose tags and slugs are therefore unknown."""
    check_permitted(author, {"status": "damaged"})
    purge(tx, post_id)
    slugs.delete_former(tx, post_id)
    tag_rows.delete_all(tx, post_id)
    index.delete(tx, post_id)


def run_for_tag(
    tx: Transaction, event: str, data: Fields, change: Callable[[list[str]], list[str]], *, on_site: bool
) -> None:
    """Run the side effects of a site-wide tag change that do not concern single posts.

    `change` applies the tag change to a list of tags. `on_site` says whether a published post has the tag.
    """
    proposal_rows.retag(tx, change)
    webhooks.record(tx, data, event, *([webhooks.SITE_CHANGED] if on_site else []))


def _events(outcome: Outcome, old: Fields, new: Fields) -> list[str]:
    """Return the types of a change's events, in order."""
    events = [EVENT_TYPES[outcome]] if outcome in EVENT_TYPES else []
    was_published, is_published = (post.get("status") == "published" for post in (old, new))
    if is_published and not was_published:
        events.append("post.published")
    if (was_published or is_published) and outcome != "unchanged":
        events.append(webhooks.SITE_CHANGED)
    return events
