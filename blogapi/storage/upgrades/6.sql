-- From version 5 to 6 (release 1.2.0): former slugs, copies of what is typed, drafts-only keys, and a new search index

CREATE TABLE former_slug (
    slug TEXT NOT NULL PRIMARY KEY, post_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE draft_copy (
    id TEXT NOT NULL PRIMARY KEY, post_id INTEGER, state TEXT NOT NULL CHECK (state IN ('open', 'continued', 'aside',
    'saved', 'discarded')), number INTEGER NOT NULL, etag TEXT NOT NULL, next TEXT NOT NULL, saved_at TEXT NOT NULL,
    browser TEXT NOT NULL, title TEXT NOT NULL, bytes INTEGER NOT NULL, fields TEXT NOT NULL
) STRICT;
CREATE INDEX draft_copy_post ON draft_copy (post_id, state, saved_at);
CREATE TABLE search_retagged (
    name TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;
DROP TABLE IF EXISTS search;
DROP TABLE IF EXISTS search_pending;

-- On SQLite

DROP TABLE IF EXISTS search_published;
DROP TABLE IF EXISTS search_others;
CREATE VIRTUAL TABLE search_published USING fts5 (title, text, labels, columnsize = 0, tokenize = 'ascii');
INSERT INTO search_published (search_published, rank) VALUES ('automerge', 0), ('crisismerge', 1000);
CREATE VIRTUAL TABLE search_others USING fts5 (title, text, labels, columnsize = 0, tokenize = 'ascii');
INSERT INTO search_others (search_others, rank) VALUES ('automerge', 0), ('crisismerge', 1000);
CREATE TABLE search_pending (
    only_tags INTEGER NOT NULL, published INTEGER NOT NULL, post_id INTEGER NOT NULL, PRIMARY KEY (only_tags, published,
    post_id)
) STRICT, WITHOUT ROWID;
-- All posts are indexed again.
DELETE FROM search_made;
ALTER TABLE api_key RENAME TO old_api_key;
CREATE TABLE api_key (
    digest BLOB NOT NULL PRIMARY KEY, name TEXT NOT NULL UNIQUE, last_four TEXT NOT NULL, created_at TEXT NOT NULL,
    last_used_on TEXT, scope TEXT NOT NULL CHECK (scope IN ('full', 'read-only', 'published-only', 'drafts-only'))
) STRICT, WITHOUT ROWID;
INSERT INTO api_key SELECT * FROM old_api_key;
DROP TABLE old_api_key;

-- On PostgreSQL

CREATE TABLE search (
    post_id bigint NOT NULL PRIMARY KEY, published boolean NOT NULL, title text COLLATE "C" NOT NULL, text text COLLATE
    "C" NOT NULL, words text COLLATE "C" NOT NULL, labels text COLLATE "C" NOT NULL
);
ALTER TABLE search ALTER text SET STORAGE EXTERNAL, ALTER words SET STORAGE EXTERNAL;
CREATE INDEX search_published ON search USING gin (
    array_to_tsvector(string_to_array(btrim(title), ' ')),
    array_to_tsvector(string_to_array(words, ' ')),
    array_to_tsvector(string_to_array(btrim(labels), ' '))
) WITH (gin_pending_list_limit = 16384) WHERE published;
CREATE INDEX search_others ON search USING gin (
    array_to_tsvector(string_to_array(btrim(title), ' ')),
    array_to_tsvector(string_to_array(words, ' ')),
    array_to_tsvector(string_to_array(btrim(labels), ' '))
) WITH (gin_pending_list_limit = 16384) WHERE NOT published;
CREATE TABLE search_pending (
    only_tags boolean NOT NULL, published boolean NOT NULL, post_id bigint NOT NULL, PRIMARY KEY (only_tags, published,
    post_id)
);
-- All posts are indexed again.
UPDATE blogapi SET unicode = '';
ALTER TABLE api_key
    DROP CONSTRAINT api_key_scope_check,
    ADD CHECK (scope IN ('full', 'read-only', 'published-only', 'drafts-only'));
