"""The owner's page, for a browser. The views require a session instead of an API key."""
