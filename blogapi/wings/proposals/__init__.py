"""Proposals: pending changes to posts, to be applied or refused."""
