"""The history of posts: revisions, the trash, and undo."""
