"""Webhooks: sending the recorded events to their receivers."""
