-- The database of version 2, as it was.

PRAGMA application_id = 0x626c6f67;  -- "blog": marks the file as ours
PRAGMA user_version = 2;

CREATE TABLE api_key (
    digest BLOB NOT NULL PRIMARY KEY,  -- SHA-256 of the key, which itself is stored nowhere
    name TEXT NOT NULL UNIQUE,
    last_four TEXT NOT NULL,
    created_at TEXT NOT NULL,
    last_used_on TEXT  -- a date in UTC
) STRICT, WITHOUT ROWID;

CREATE TABLE post (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,  -- AUTOINCREMENT: never used again after a delete
    slug TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('published', 'draft', 'scheduled', 'archived')),
    document TEXT NOT NULL  -- the Post as JSON, just as it is answered; slug and status are its copies
) STRICT;

CREATE INDEX post_status ON post (status, id);

-- One index for a tag, and for a tag and a status. Lists of a tag whatever the status merge those of the four:
-- every further index would be written for each tag of each post.
CREATE TABLE post_tag (
    tag TEXT NOT NULL,  -- case-folded and normalized: what decides whether two tags are the same
    status TEXT NOT NULL,  -- a copy of the post's
    post_id INTEGER NOT NULL,
    PRIMARY KEY (tag, status, post_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE tag (
    tag TEXT NOT NULL PRIMARY KEY,  -- folded, as in post_tag
    name TEXT NOT NULL,  -- the spelling in the newest post carrying it
    newest INTEGER NOT NULL,  -- that post
    posts INTEGER NOT NULL  -- how many carry it: to count them would take seconds
) STRICT, WITHOUT ROWID;

CREATE TABLE schedule (
    post_id INTEGER NOT NULL PRIMARY KEY,  -- a post whose status is scheduled
    published_at TEXT NOT NULL  -- a copy of the post's
) STRICT;

CREATE INDEX schedule_due ON schedule (published_at);

CREATE TABLE idempotency (
    digest BLOB NOT NULL,  -- of the API key
    name TEXT NOT NULL,  -- the Idempotency-Key
    request BLOB NOT NULL,  -- SHA-256 of the body
    post_id INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (digest, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_age ON idempotency (created_at);
