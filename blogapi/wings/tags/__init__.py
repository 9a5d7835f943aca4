"""List tags, and change a tag in every post."""
