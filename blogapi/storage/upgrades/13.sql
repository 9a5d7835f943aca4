-- From version 12 to 13 (release 1.4.0): due posts are found by their status and date. The options of webhooks move
-- from a separate table to columns. Unsaved text gets drafts, which 13.py fills in. Refused proposals are kept, so that
-- a refusal can be undone. The search gets a single index, so the service indexes all posts again.

DROP TABLE schedule;

DROP INDEX post_tag_scheduled;

ALTER TABLE webhook ADD COLUMN headers TEXT NOT NULL DEFAULT '{}';

ALTER TABLE webhook ADD COLUMN after_seconds INTEGER NOT NULL DEFAULT 0;

ALTER TABLE webhook ADD COLUMN body TEXT NOT NULL DEFAULT 'event';

UPDATE webhook SET
    headers = (SELECT headers FROM webhook_options WHERE webhook_id = id),
    after_seconds = (SELECT after_seconds FROM webhook_options WHERE webhook_id = id),
    body = (SELECT body FROM webhook_options WHERE webhook_id = id)
WHERE id IN (SELECT webhook_id FROM webhook_options);

DROP TABLE webhook_options;

ALTER TABLE proposal ADD COLUMN refused_at TEXT;

DROP TABLE search_label;

-- On SQLite

ALTER TABLE draft_copy RENAME TO old_draft_copy;

CREATE TABLE draft_copy (
    id TEXT NOT NULL PRIMARY KEY, draft TEXT NOT NULL DEFAULT '', post_id INTEGER, state TEXT NOT NULL, number INTEGER
    NOT NULL, seen TEXT NOT NULL DEFAULT '{}', etag TEXT NOT NULL, saved_at TEXT NOT NULL, browser TEXT NOT NULL, title
    TEXT NOT NULL, bytes INTEGER NOT NULL, fields TEXT NOT NULL
) STRICT;

INSERT INTO draft_copy (id, post_id, state, number, etag, saved_at, browser, title, bytes, fields)
SELECT id, post_id, state, number, etag, saved_at, browser, title, bytes, fields FROM old_draft_copy;

DROP TABLE old_draft_copy;

CREATE INDEX draft_copy_draft ON draft_copy (draft, saved_at);

DROP TABLE search_published;

DROP TABLE search_others;

CREATE VIRTUAL TABLE search USING fts5 (title, text, columnsize = 0, tokenize = 'ascii');

-- On PostgreSQL

ALTER TABLE draft_copy
    DROP CONSTRAINT draft_copy_state_check,
    DROP COLUMN next,
    ADD COLUMN draft text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN seen text COLLATE "C" NOT NULL DEFAULT '{}';

DROP INDEX draft_copy_post;

CREATE INDEX draft_copy_draft ON draft_copy (draft, saved_at);

DROP INDEX search_published;

DROP INDEX search_others;

TRUNCATE search;

ALTER TABLE search DROP published, DROP labels;

CREATE INDEX search_words ON search USING gin (
    array_to_tsvector(string_to_array(btrim(title), ' ')),
    array_to_tsvector(string_to_array(words, ' '))
) WITH (gin_pending_list_limit = 16384);
