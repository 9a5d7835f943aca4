"""Create, find, list, change and delete posts."""
