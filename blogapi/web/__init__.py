"""HTTP: requests, access, views, responses and errors."""
