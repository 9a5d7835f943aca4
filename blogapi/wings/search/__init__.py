"""The search of posts."""
