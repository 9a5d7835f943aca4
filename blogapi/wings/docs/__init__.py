"""The description of the API, its page, health and metrics."""
