"""Describe the API (OpenAPI), show the description as a page, and report metrics."""
