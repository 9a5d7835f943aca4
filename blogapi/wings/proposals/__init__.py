"""Proposals: changes to posts that wait until somebody applies or refuses them."""
