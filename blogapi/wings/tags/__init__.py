"""Tags: lists of tags, and changes to a tag in every post."""
