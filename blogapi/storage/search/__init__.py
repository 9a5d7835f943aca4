"""The search: posts are found by the words that they have, and by no others."""
