"""Interpret SQLite's error codes."""

import sqlite3

# After these errors, the pages that SQLite has cached may be wrong.
DISTRUSTED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB}
# These errors concern the file, the disk or the connection, so they affect every operation. All other errors concern a
# single statement.
FATAL = DISTRUSTED | {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}
PASSING_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM}  # a retry may succeed
NOT_UNIQUE = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}
REMEDIES = {
    sqlite3.SQLITE_CORRUPT: "; restore a backup",
    sqlite3.SQLITE_IOERR: "; is the disk full?",
    sqlite3.SQLITE_NOTADB: "; restore a backup, or set BLOGAPI_DATABASE to another file",
}
ERRORS = (sqlite3.Error, MemoryError)  # sqlite3 raises SQLITE_NOMEM as a MemoryError


def code_of(error: BaseException | None) -> int:
    """Return the primary result code of a SQLite error, or 0 for any other error."""
    return sqlite3.SQLITE_NOMEM if isinstance(error, MemoryError) else getattr(error, "sqlite_errorcode", 0) & 0xFF
