"""The owner's page, for a browser. A session takes the place of a key."""
