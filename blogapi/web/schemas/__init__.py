"""Schemas of queries, bodies, answers and events."""
