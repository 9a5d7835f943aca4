"""Record events, and send them to webhooks."""
