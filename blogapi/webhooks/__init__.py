"""Webhooks: what was recorded for them is sent to their receivers."""
