"""Sync a folder of Markdown files with the posts of a service: push, pull and status."""
