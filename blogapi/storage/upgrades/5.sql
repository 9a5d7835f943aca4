-- From version 1 to 5, of the releases 1.0.0 and 1.1.0. IF EXISTS, because the versions between were used in development.

DROP TABLE IF EXISTS session;
DROP TABLE IF EXISTS tag;
DROP INDEX IF EXISTS post_tag_published;
DROP TABLE IF EXISTS recent;
CREATE TABLE IF NOT EXISTS image (
    id TEXT NOT NULL PRIMARY KEY, upload TEXT NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL, bytes INTEGER NOT NULL,
    width INTEGER NOT NULL, height INTEGER NOT NULL, created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS image_created ON image (created_at, id);
CREATE TABLE IF NOT EXISTS image_part (
    upload TEXT NOT NULL, number INTEGER NOT NULL, content BLOB NOT NULL, PRIMARY KEY (upload, number)
) STRICT;
CREATE TABLE IF NOT EXISTS retagging (
    post_id INTEGER NOT NULL, version INTEGER NOT NULL, number INTEGER NOT NULL, changed_at TEXT NOT NULL, author TEXT
    NOT NULL, tags TEXT NOT NULL, PRIMARY KEY (post_id, version, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS retagging_changed ON retagging (changed_at);
CREATE TABLE IF NOT EXISTS webhook_options (
    webhook_id INTEGER NOT NULL PRIMARY KEY, headers TEXT NOT NULL, after_seconds INTEGER NOT NULL, body TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS owner_session (
    digest BLOB NOT NULL PRIMARY KEY, kind TEXT NOT NULL CHECK (kind IN ('link', 'session')), ends_at TEXT NOT NULL,
    days INTEGER NOT NULL, opened_at TEXT NOT NULL, used_at TEXT NOT NULL, browser TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS upload (
    name TEXT NOT NULL PRIMARY KEY
) STRICT;
CREATE TABLE IF NOT EXISTS image_total (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1), bytes INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS post_tag_by_time ON post_tag (status, tag, published_at, post_id) WHERE published_at IS NOT NULL;
CREATE TABLE IF NOT EXISTS preview_link (
    digest BLOB NOT NULL PRIMARY KEY, post_id INTEGER NOT NULL, created_at TEXT NOT NULL, ends_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS preview_link_post ON preview_link (post_id);
CREATE TABLE IF NOT EXISTS purge (
    post_id INTEGER NOT NULL PRIMARY KEY, purged_at TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS purge_time ON purge (purged_at);
INSERT INTO upload SELECT DISTINCT upload FROM image_part WHERE upload NOT IN (SELECT upload FROM image) ON CONFLICT DO NOTHING;
INSERT INTO image_total SELECT 1, sum(bytes) FROM image GROUP BY 1 ON CONFLICT DO NOTHING;

-- On SQLite

CREATE TABLE deleted_post (
    greatest_id INTEGER NOT NULL
) STRICT;
INSERT INTO deleted_post SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'post';
DELETE FROM sqlite_sequence WHERE name = 'post';
-- 7.sql creates its successor, newest_post_deleted.
DROP TRIGGER post_deleted;

-- On PostgreSQL

ALTER TABLE image_part ALTER content SET STORAGE EXTERNAL;
