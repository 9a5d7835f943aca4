-- From version 10 to 11 (release 1.3.0): tables for proposals, which versions 8 to 10 of development had in draft_copy

CREATE TABLE proposal (
    id INTEGER NOT NULL PRIMARY KEY, post_id INTEGER NOT NULL, author TEXT NOT NULL, created_at TEXT NOT NULL, number
    INTEGER NOT NULL, bytes INTEGER NOT NULL, base TEXT NOT NULL, document TEXT NOT NULL
) STRICT;

INSERT INTO proposal
SELECT CAST(id AS INTEGER), post_id, browser, saved_at, number, bytes, next, fields FROM draft_copy
WHERE state = 'proposed';

CREATE INDEX proposal_post ON proposal (post_id, created_at, number);

CREATE INDEX proposal_created ON proposal (created_at, number);

CREATE TABLE applied_proposal (
    post_id INTEGER NOT NULL, version INTEGER NOT NULL, author TEXT NOT NULL, applied_at TEXT NOT NULL, PRIMARY KEY
    (post_id, version)
) STRICT, WITHOUT ROWID;

INSERT INTO applied_proposal SELECT post_id, number, browser, saved_at FROM draft_copy WHERE state = 'applied';

DELETE FROM draft_copy WHERE state IN ('proposed', 'applied');

DROP INDEX IF EXISTS draft_copy_proposed;

-- On SQLite

ALTER TABLE draft_copy RENAME TO old_draft_copy;

CREATE TABLE draft_copy (
    id TEXT NOT NULL PRIMARY KEY, post_id INTEGER, state TEXT NOT NULL CHECK (state IN ('open', 'continued', 'aside',
    'saved', 'discarded')), number INTEGER NOT NULL, etag TEXT NOT NULL, next TEXT NOT NULL, saved_at TEXT NOT NULL,
    browser TEXT NOT NULL, title TEXT NOT NULL, bytes INTEGER NOT NULL, fields TEXT NOT NULL
) STRICT;

INSERT INTO draft_copy SELECT * FROM old_draft_copy;

DROP TABLE old_draft_copy;

CREATE INDEX draft_copy_post ON draft_copy (post_id, state, saved_at);

-- On PostgreSQL

ALTER TABLE draft_copy
    DROP CONSTRAINT draft_copy_state_check,
    ADD CHECK (state IN ('open', 'continued', 'aside', 'saved', 'discarded'));
