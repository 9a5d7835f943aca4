"""What a request meets on its way in, and an answer on its way out."""
