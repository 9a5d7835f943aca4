"""What a request may carry, and what is answered and sent, as marshmallow schemas."""
