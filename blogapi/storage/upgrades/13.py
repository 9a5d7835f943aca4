"""Gives each draft one current copy: its newest open copy, which 1.3.0 showed in the form."""

from blogapi.storage.upgrades import Execute

NEWER = """
SELECT 1 FROM draft_copy AS newer WHERE newer.draft = draft_copy.draft AND newer.state = 'open'
AND (newer.saved_at > draft_copy.saved_at OR (newer.saved_at = draft_copy.saved_at AND newer.id < draft_copy.id))
"""


def compute(execute: Execute) -> None:
    """Delete the copies without text; in the others, set `draft`, and leave only the newest of each draft open."""
    execute("DELETE FROM draft_copy WHERE state IN ('continued', 'saved')")
    execute("UPDATE draft_copy SET draft = COALESCE(CAST(post_id AS TEXT), id)")
    execute(f"UPDATE draft_copy SET state = 'aside' WHERE state = 'open' AND EXISTS ({NEWER})")
