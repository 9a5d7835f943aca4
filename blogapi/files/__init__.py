"""Posts as files: Markdown, imports from other programs, and the export."""
