"""Upload, store and serve images."""
