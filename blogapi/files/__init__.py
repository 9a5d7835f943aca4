"""Posts as files: Markdown read and written, what other programs left, and the export."""
