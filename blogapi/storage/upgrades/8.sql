-- From version 7 to 8, of release 1.3.0: proposals

-- On SQLite

ALTER TABLE draft_copy RENAME TO old_draft_copy;

CREATE TABLE draft_copy (
    id TEXT NOT NULL PRIMARY KEY, post_id INTEGER, state TEXT NOT NULL CHECK (state IN ('open', 'continued', 'aside',
    'saved', 'discarded', 'proposed', 'applied')), number INTEGER NOT NULL, etag TEXT NOT NULL, next TEXT NOT NULL,
    saved_at TEXT NOT NULL, browser TEXT NOT NULL, title TEXT NOT NULL, bytes INTEGER NOT NULL, fields TEXT NOT NULL
) STRICT;

INSERT INTO draft_copy SELECT * FROM old_draft_copy;

DROP TABLE old_draft_copy;

CREATE INDEX draft_copy_post ON draft_copy (post_id, state, saved_at);

CREATE INDEX draft_copy_proposed ON draft_copy (saved_at, id) WHERE state = 'proposed';

-- On PostgreSQL

ALTER TABLE draft_copy
    DROP CONSTRAINT draft_copy_state_check,
    ADD CHECK (state IN ('open', 'continued', 'aside', 'saved', 'discarded', 'proposed', 'applied'));

CREATE INDEX draft_copy_proposed ON draft_copy (saved_at, id) WHERE state = 'proposed';
