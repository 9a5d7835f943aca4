"""Use PostgreSQL as the database."""
