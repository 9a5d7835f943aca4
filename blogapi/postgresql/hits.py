"""The rate limit across several processes: the query that finds a key also counts the request.

The windows follow PostgreSQL's clock. If that is set back, no window begins twice.
"""

from blogapi.storage.engine import Compiled
from blogapi.storage.keys import WINDOW_SECONDS, KnownKey

KEY_COLUMNS = ", ".join(KnownKey._fields)
NOW = "floor(extract(epoch FROM clock_timestamp()))::bigint"
WINDOW = f"{NOW} / {WINDOW_SECONDS}"
KEY_WITH_HITS = Compiled(f"""
    WITH key AS (SELECT {KEY_COLUMNS} FROM api_key WHERE digest = :digest), hit AS (
        INSERT INTO hits AS old
        SELECT digest, {WINDOW}, 1 FROM key
        ON CONFLICT (digest) DO UPDATE SET
            hits = CASE WHEN excluded.number IN (old.number, old.number - 1) THEN old.hits + 1 ELSE 1 END,
            number = CASE WHEN excluded.number = old.number - 1 THEN old.number ELSE excluded.number END
        RETURNING hits, number
    )
    SELECT {KEY_COLUMNS}, hits, number, {NOW} FROM key, hit
""")
FOUND = f"SELECT hits FROM hits WHERE digest = :digest AND number = {WINDOW}"
HITS_IN_WINDOW = Compiled(f"SELECT coalesce(({FOUND}), 0), {WINDOW}, {NOW}")
