"""Fills in the tags of proposals, replaces entity tags, and ties Idempotency-Keys to the names of API keys."""

import json
from contextlib import suppress
from hashlib import blake2b, sha256

from xxhash import xxh3_128_hexdigest

from blogapi.storage.upgrades import Execute

POSTS = "SELECT post_id FROM proposal UNION SELECT post_id FROM draft_copy WHERE post_id IS NOT NULL"


def compute(execute: Execute) -> None:
    """Upgrade the unsaved text, the proposals and the Idempotency-Keys."""
    etags: dict[str, str] = {}  # maps the old entity tag of each post to the new one
    for (post_id,) in list(execute(POSTS)):
        with suppress(TypeError, AttributeError):  # Skip a post that is damaged or in the trash.
            document = execute("SELECT document FROM post WHERE id = ?", (post_id,)).fetchone()[0].encode()
            etags[xxh3_128_hexdigest(document)] = blake2b(document, digest_size=32).hexdigest()
    for old, new in etags.items():
        execute("UPDATE draft_copy SET etag = ? WHERE etag = ?", (new, old))
    for (proposal_id,) in list(execute("SELECT id FROM proposal")):
        with suppress(TypeError, ValueError, KeyError):  # Skip a damaged proposal.
            _complete(execute, proposal_id, etags)
    for name, digest in list(execute("SELECT name, digest FROM api_key")):
        execute("UPDATE idempotency SET digest = ? WHERE digest = ?", (sha256(name.encode()).digest(), digest))


def _complete(execute: Execute, proposal_id: int, etags: dict[str, str]) -> None:
    proposal = json.loads(execute("SELECT document FROM proposal WHERE id = ?", (proposal_id,)).fetchone()[0])
    proposal["base"] = etags.get(proposal["base"], proposal["base"])
    changes = proposal["changes"]
    tags, size = _dump(changes["tags"]) if "tags" in changes else "", len(_dump(changes).encode())
    update = "UPDATE proposal SET tags = ?, bytes = ?, document = ? WHERE id = ?"
    execute(update, (tags, size, _dump(proposal), proposal_id))


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
