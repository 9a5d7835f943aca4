"""The owner's page, for a browser. A session replaces the key."""
