"""The owner's page: a room of its own, for a browser, entered by a session in place of a key."""
