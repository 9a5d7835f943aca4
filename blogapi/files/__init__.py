"""A post as a Markdown file."""
