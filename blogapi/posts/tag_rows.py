"""Write the tag rows of posts, which lists and filters use."""

from typing import Any

from blogapi.storage.engine import Compiled, Placeholder, Transaction, placeholders
from blogapi.storage.models import PostTag
from blogapi.text import fold


def change(tx: Transaction, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Replace the tag rows of a post, which also copy its status and date. {} stands for a post that does not exist."""
    before, after = _rows_of(old), _rows_of(new)
    if before == after:
        return
    if before:
        tx.execute_many(DELETE_TAG, before)
    if after:
        tx.execute_many(INSERT_TAG, after)


def _rows_of(post: dict[str, Any]) -> list[dict[str, Any]]:
    if not post:
        return []
    own = {"status": post["status"], "post_id": int(post["id"]), "published_at": post.get("published_at")}
    return [{"tag": fold(name), "name": name} | own for name in post["tags"]]


def delete_all(tx: Transaction, post_id: int) -> None:
    """Delete all tag rows of a post with an unreadable document. This scans the tags of all posts."""
    tx.execute(PostTag.delete().where(PostTag.post_id == post_id))


_of_tag = (PostTag.tag == Placeholder("tag")) & (PostTag.status == Placeholder("status"))
IS_TAG_OF_POST = _of_tag & (PostTag.post_id == Placeholder("post_id"))
INSERT_TAG = Compiled(PostTag.insert(placeholders(PostTag)))
DELETE_TAG = Compiled(PostTag.delete().where(IS_TAG_OF_POST))
