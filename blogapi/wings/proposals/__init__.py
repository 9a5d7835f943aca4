"""Proposals: pending changes to posts, which somebody applies or refuses."""
