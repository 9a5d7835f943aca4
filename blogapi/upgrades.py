"""The upgrades of the database: n has the statements that make version n + 1 of version n.

Tables and indexes are as in schema.sql, to the letter, so that an upgraded database is like a fresh one.
"""

UPGRADES = {
    1: """
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

INSERT INTO tag (tag, name, newest, posts)
SELECT
    tag,
    (SELECT value FROM post, json_each(document, '$.tags') WHERE post.id = newest AND fold(value) = tag),
    newest,
    posts
FROM (SELECT tag, max(post_id) AS newest, count(*) AS posts FROM post_tag GROUP BY tag);
""",
}
