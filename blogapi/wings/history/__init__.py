"""Read and restore revisions and deleted posts, and undo changes."""
