"""PostgreSQL, the second engine."""
