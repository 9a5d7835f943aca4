"""Read and write posts as Markdown files with front matter."""
