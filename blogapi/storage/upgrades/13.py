"""Gives each draft one current copy: the newest open one, which 1.3.0 opened the form with."""

from blogapi.storage.upgrades import Execute

NEWER = """
SELECT 1 FROM draft_copy AS newer WHERE newer.draft = draft_copy.draft AND newer.state = 'open'
AND (newer.saved_at > draft_copy.saved_at OR (newer.saved_at = draft_copy.saved_at AND newer.id < draft_copy.id))
"""


def compute(execute: Execute) -> None:
    """Drop the copies without text, and set the draft of the others."""
    execute("DELETE FROM draft_copy WHERE state IN ('continued', 'saved')")
    execute("UPDATE draft_copy SET draft = COALESCE(CAST(post_id AS TEXT), id)")
    execute(f"UPDATE draft_copy SET state = 'aside' WHERE state = 'open' AND EXISTS ({NEWER})")
