"""Tags: lists, and changes of a tag in every post."""
