-- The whole database on PostgreSQL, the counterpart of schema.sql. A test compares both with the models.
-- COLLATE "C" sorts by bytes, as on SQLite, whatever the database's own collation is.

CREATE TABLE blogapi (  -- marks the database as ours
    version integer NOT NULL,
    unicode text NOT NULL  -- the Unicode version with which all words were indexed; '' until then
);

INSERT INTO blogapi VALUES (6, '');

-- The highest ids ever used. A sequence would leave gaps.
CREATE TABLE counter (
    name text NOT NULL PRIMARY KEY,
    last bigint NOT NULL
);

INSERT INTO counter VALUES ('post', 0), ('webhook', 0), ('event', 0);

CREATE FUNCTION next_id(kind text) RETURNS bigint LANGUAGE sql AS
$$ UPDATE counter SET last = last + 1 WHERE name = kind RETURNING last $$;

CREATE TABLE api_key (
    digest bytea NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    last_four text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    last_used_on text COLLATE "C",
    scope text COLLATE "C" NOT NULL CHECK (scope IN ('full', 'read-only', 'published-only', 'drafts-only'))
);

CREATE TABLE owner_session (
    digest bytea NOT NULL PRIMARY KEY,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('link', 'session')),
    ends_at text COLLATE "C" NOT NULL,
    days bigint NOT NULL,
    opened_at text COLLATE "C" NOT NULL,
    used_at text COLLATE "C" NOT NULL,
    browser text COLLATE "C" NOT NULL
);

-- The requests of each key in its latest window. UNLOGGED: after a crash of PostgreSQL, the counts start over.
CREATE UNLOGGED TABLE hits (
    digest bytea NOT NULL PRIMARY KEY REFERENCES api_key ON UPDATE CASCADE ON DELETE CASCADE,
    number bigint NOT NULL,  -- number of the window: the Unix time of its start / 60
    hits bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE preview_link (
    digest bytea NOT NULL PRIMARY KEY,
    post_id bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    ends_at text COLLATE "C" NOT NULL
);

CREATE INDEX preview_link_post ON preview_link (post_id);

CREATE TABLE draft_copy (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    post_id bigint,
    state text COLLATE "C" NOT NULL CHECK (state IN ('open', 'continued', 'aside', 'saved', 'discarded')),
    number bigint NOT NULL,
    etag text COLLATE "C" NOT NULL,
    next text COLLATE "C" NOT NULL,
    saved_at text COLLATE "C" NOT NULL,
    browser text COLLATE "C" NOT NULL,
    title text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    fields text COLLATE "C" NOT NULL
);

CREATE INDEX draft_copy_post ON draft_copy (post_id, state, saved_at);

CREATE TABLE post (
    id bigint NOT NULL PRIMARY KEY DEFAULT next_id('post'),
    slug text COLLATE "C" NOT NULL UNIQUE,
    status text COLLATE "C" NOT NULL CHECK (status IN ('published', 'draft', 'scheduled', 'archived')),
    published_at text COLLATE "C",
    updated_at text COLLATE "C" NOT NULL DEFAULT '',
    version bigint NOT NULL DEFAULT 1,
    since text COLLATE "C" NOT NULL DEFAULT '',
    author text COLLATE "C" NOT NULL DEFAULT '',
    document text COLLATE "C" NOT NULL
);

CREATE INDEX post_status ON post (status, id);

CREATE INDEX post_published ON post (status, published_at, id) WHERE published_at IS NOT NULL;

CREATE INDEX post_updated ON post (status, updated_at, id);

CREATE TABLE former_slug (
    slug text COLLATE "C" NOT NULL PRIMARY KEY,
    post_id bigint NOT NULL
);

CREATE TABLE revision (
    post_id bigint NOT NULL,
    version bigint NOT NULL,
    since text COLLATE "C" NOT NULL,
    author text COLLATE "C" NOT NULL,
    until text COLLATE "C" NOT NULL,
    replaced_by text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('replaced', 'deleted', 'restored')),
    document text COLLATE "C" NOT NULL,
    PRIMARY KEY (post_id, version)
);

CREATE INDEX revision_until ON revision (state, until, post_id);

CREATE TABLE retagging (
    post_id bigint NOT NULL,
    version bigint NOT NULL,
    number bigint NOT NULL,
    changed_at text COLLATE "C" NOT NULL,
    author text COLLATE "C" NOT NULL,
    tags text COLLATE "C" NOT NULL,
    PRIMARY KEY (post_id, version, number)
);

CREATE INDEX retagging_changed ON retagging (changed_at);

CREATE TABLE purge (
    post_id bigint NOT NULL PRIMARY KEY,
    purged_at text COLLATE "C" NOT NULL
);

CREATE INDEX purge_time ON purge (purged_at);

CREATE TABLE post_tag (
    tag text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL,
    post_id bigint NOT NULL,
    published_at text COLLATE "C",
    name text COLLATE "C" NOT NULL,
    PRIMARY KEY (tag, status, post_id)
);

CREATE INDEX post_tag_by_time ON post_tag (status, tag, published_at, post_id) WHERE published_at IS NOT NULL;

CREATE INDEX post_tag_scheduled ON post_tag (post_id, tag) WHERE status = 'scheduled';

CREATE TABLE schedule (
    post_id bigint NOT NULL PRIMARY KEY,
    published_at text COLLATE "C" NOT NULL
);

CREATE INDEX schedule_due ON schedule (published_at);

CREATE TABLE idempotency (
    digest bytea NOT NULL,
    name text COLLATE "C" NOT NULL,
    request bytea NOT NULL,
    post_id bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (digest, name)
);

CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE webhook (
    id bigint NOT NULL PRIMARY KEY DEFAULT next_id('webhook'),
    url text COLLATE "C" NOT NULL,
    events text COLLATE "C" NOT NULL,
    active bigint NOT NULL CHECK (active IN (0, 1)),
    secret text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL
);

CREATE TABLE webhook_options (
    webhook_id bigint NOT NULL PRIMARY KEY,
    headers text COLLATE "C" NOT NULL,
    after_seconds bigint NOT NULL,
    body text COLLATE "C" NOT NULL
);

CREATE TABLE event (
    id bigint NOT NULL PRIMARY KEY DEFAULT next_id('event'),
    message_id text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    payload text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL
);

CREATE TABLE delivery (
    webhook_id bigint NOT NULL,
    event_id bigint NOT NULL,
    state text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts bigint NOT NULL,
    last_status bigint,
    last_error text COLLATE "C",
    repeats bigint NOT NULL,
    next_attempt_at text COLLATE "C",
    PRIMARY KEY (webhook_id, event_id)
);

CREATE INDEX delivery_due ON delivery (webhook_id, next_attempt_at, event_id) WHERE state = 'pending';

CREATE TABLE image (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    upload text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    type text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    width bigint NOT NULL,
    height bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL
);

CREATE INDEX image_created ON image (created_at, id);

CREATE TABLE image_part (
    upload text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    content bytea NOT NULL,
    PRIMARY KEY (upload, number)
);

ALTER TABLE image_part ALTER content SET STORAGE EXTERNAL;  -- uncompressed, so a piece can be read without the rest

CREATE TABLE upload (
    name text COLLATE "C" NOT NULL PRIMARY KEY
);

INSERT INTO upload SELECT DISTINCT upload FROM image_part WHERE upload NOT IN (SELECT upload FROM image);

CREATE TABLE image_total (
    id bigint NOT NULL PRIMARY KEY CHECK (id = 1),
    bytes bigint NOT NULL
);

INSERT INTO image_total SELECT 1, sum(bytes) FROM image GROUP BY 1;

-- The words of all posts, with a space before and after each word.
CREATE TABLE search (
    post_id bigint NOT NULL PRIMARY KEY,
    published boolean NOT NULL,
    title text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,  -- includes the title
    words text COLLATE "C" NOT NULL,  -- the distinct words of the text, for the index, which would sort all repeats
    labels text COLLATE "C" NOT NULL
);

-- Compressing the words of a large post would take longer than everything else.
ALTER TABLE search ALTER text SET STORAGE EXTERNAL, ALTER words SET STORAGE EXTERNAL;

-- Two indexes, so that a search among published posts reads nothing about others. Pending entries (at most this many
-- kB) are merged outside of transactions, because that can take 0.2 s.
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
    only_tags boolean NOT NULL,
    published boolean NOT NULL,
    post_id bigint NOT NULL,
    PRIMARY KEY (only_tags, published, post_id)
);

CREATE TABLE search_retagged (
    name text COLLATE "C" NOT NULL PRIMARY KEY
);

ANALYZE;
