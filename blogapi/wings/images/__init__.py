"""Images: uploads, files, and their formats."""
