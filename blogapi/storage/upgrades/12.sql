-- From version 11 to 12 (release 1.3.1): the ids of proposals are never reused, and proposals record their tags. A new
-- table contains the time of the last backup.

CREATE TABLE backup (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    made_at TEXT NOT NULL
) STRICT;

-- On SQLite

ALTER TABLE proposal RENAME TO old_proposal;

CREATE TABLE proposal (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, post_id INTEGER NOT NULL, author TEXT NOT NULL, created_at TEXT NOT
    NULL, bytes INTEGER NOT NULL, tags TEXT NOT NULL DEFAULT '', base TEXT NOT NULL, document TEXT NOT NULL
) STRICT;

INSERT INTO sqlite_sequence (name, seq) VALUES ('proposal', 0);

INSERT INTO proposal (id, post_id, author, created_at, bytes, base, document)
SELECT id, post_id, author, created_at, bytes, base, document FROM old_proposal;

DROP TABLE old_proposal;

CREATE INDEX proposal_post ON proposal (post_id, created_at, id);

CREATE INDEX proposal_created ON proposal (created_at, id);

-- On PostgreSQL

ALTER TABLE proposal DROP number, ADD tags text COLLATE "C" NOT NULL DEFAULT '';

CREATE INDEX proposal_post ON proposal (post_id, created_at, id);

CREATE INDEX proposal_created ON proposal (created_at, id);

INSERT INTO counter SELECT 'proposal', coalesce(max(id), 0) FROM proposal;

ALTER TABLE proposal ALTER id SET DEFAULT next_id('proposal');
