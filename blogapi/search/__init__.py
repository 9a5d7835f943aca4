"""Search posts by their words."""
