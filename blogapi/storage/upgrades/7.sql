-- From version 6 to 7 (release 1.2.1): constraints that cost nothing, and the defaults of a delivery

-- On SQLite

ALTER TABLE post RENAME TO old_post;
CREATE TABLE post (
    id INTEGER NOT NULL PRIMARY KEY, slug TEXT NOT NULL UNIQUE, status TEXT NOT NULL CHECK (status = 'published' OR
    status = 'draft' OR status = 'scheduled' OR status = 'archived'), published_at TEXT, updated_at TEXT NOT NULL
    DEFAULT '', version INTEGER NOT NULL DEFAULT 1, since TEXT NOT NULL DEFAULT '', author TEXT NOT NULL DEFAULT '',
    document TEXT NOT NULL
) STRICT;
INSERT INTO post SELECT * FROM old_post;
DROP TABLE old_post;
CREATE INDEX post_status ON post (status, id);
CREATE INDEX post_published ON post (status, published_at, id) WHERE published_at IS NOT NULL;
CREATE INDEX post_updated ON post (status, updated_at, id);
CREATE TRIGGER newest_post_deleted AFTER DELETE ON post WHEN NOT EXISTS (SELECT 1 FROM post WHERE id > OLD.id)
BEGIN
    UPDATE deleted_post SET greatest_id = max(greatest_id, OLD.id);
END;
ALTER TABLE delivery RENAME TO old_delivery;
CREATE TABLE delivery (
    webhook_id INTEGER NOT NULL, event_id INTEGER NOT NULL, state TEXT NOT NULL CHECK (state = 'pending' OR state =
    'delivered' OR state = 'failed'), attempts INTEGER NOT NULL DEFAULT 0, last_status INTEGER, last_error TEXT, repeats
    INTEGER NOT NULL DEFAULT 0, next_attempt_at TEXT, PRIMARY KEY (webhook_id, event_id)
) STRICT, WITHOUT ROWID;
INSERT INTO delivery SELECT * FROM old_delivery;
DROP TABLE old_delivery;
CREATE INDEX delivery_due ON delivery (webhook_id, next_attempt_at, event_id) WHERE state = 'pending';

-- On PostgreSQL

ALTER TABLE post
    DROP CONSTRAINT post_status_check,
    ADD CHECK (status = 'published' OR status = 'draft' OR status = 'scheduled' OR status = 'archived');
ALTER TABLE delivery
    DROP CONSTRAINT delivery_state_check,
    ADD CHECK (state = 'pending' OR state = 'delivered' OR state = 'failed'),
    ALTER attempts SET DEFAULT 0,
    ALTER repeats SET DEFAULT 0;
