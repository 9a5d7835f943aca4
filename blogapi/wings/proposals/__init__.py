"""Propose changes to posts, for somebody to apply or refuse."""
