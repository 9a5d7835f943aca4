"""Posts: their views, their schemas, and their storage."""
