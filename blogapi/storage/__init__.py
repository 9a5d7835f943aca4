"""What is kept: the database, its tables, and what is done with them. Nothing of HTTP is in here."""
