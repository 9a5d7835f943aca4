"""Store data: the database, its tables, and the operations on them, independent of HTTP."""
