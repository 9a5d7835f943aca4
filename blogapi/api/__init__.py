"""Handle HTTP for every operation: requests, access, responses and errors."""
