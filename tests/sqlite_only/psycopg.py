"""Keep Peewee from importing psycopg in servers that use SQLite, which takes a fifth of their start."""

raise ImportError
