"""Full-text search for posts."""
