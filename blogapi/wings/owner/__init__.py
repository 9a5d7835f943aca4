"""The owner's page, for a browser. Its views require a session instead of an API key."""
