"""A post as a Markdown file with front matter."""
