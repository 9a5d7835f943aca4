"""Storage: the database, its tables, and the operations on them, without HTTP."""
