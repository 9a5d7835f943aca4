-- The whole database: tables, constraints and indexes. The models are built from this file, and so are PostgreSQL's
-- tables. Each change to it also needs a numbered file in blogapi/storage/upgrades. Use empty lines only between
-- statements. The last section is for SQLite only; the section for PostgreSQL is blogapi/postgresql/schema.sql.
-- On tables with frequent writes, constraints use OR, because SQLite builds a temporary table for each row to test an
-- IN.

CREATE TABLE api_key (
    digest BLOB NOT NULL PRIMARY KEY,  -- SHA-256 of the key, which is not stored
    name TEXT NOT NULL UNIQUE,
    last_four TEXT NOT NULL,
    created_at TEXT NOT NULL,
    last_used_on TEXT,  -- a date in UTC
    scope TEXT NOT NULL CHECK (scope IN ('full', 'read-only', 'published-only', 'drafts-only'))
) STRICT, WITHOUT ROWID;

-- Sessions on the owner's page, and the links that open them
CREATE TABLE owner_session (
    digest BLOB NOT NULL PRIMARY KEY,  -- SHA-256 of the token, which is not stored
    kind TEXT NOT NULL CHECK (kind IN ('link', 'session')),  -- a link opens a single session
    ends_at TEXT NOT NULL,
    days INTEGER NOT NULL,  -- session lifetime in days after last use; 0 = 12 hours after login
    opened_at TEXT NOT NULL,
    used_at TEXT NOT NULL,  -- last use, updated at most once an hour
    browser TEXT NOT NULL  -- User-Agent
) STRICT, WITHOUT ROWID;

-- Links to the preview of a post, which work without a session
CREATE TABLE preview_link (
    digest BLOB NOT NULL PRIMARY KEY,  -- SHA-256 of the token, which is not stored
    post_id INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    ends_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX preview_link_post ON preview_link (post_id);

-- Unsaved text from the post forms on the owner's page
CREATE TABLE draft_copy (
    id TEXT NOT NULL PRIMARY KEY,  -- chosen by the page each time it opens a form
    draft TEXT NOT NULL DEFAULT '',  -- the id of the post or, for a new post, an id that the page chose
    post_id INTEGER,  -- NULL for a new post
    state TEXT NOT NULL,  -- open or saved (without text): the draft's current copy; others: see wings/owner/copies.py
    number INTEGER NOT NULL,  -- increases each time the form sends its text
    seen TEXT NOT NULL DEFAULT '{}',  -- a JSON object: the last number of each form whose text this one has or replaces
    etag TEXT NOT NULL,  -- the ETag of the version being edited or, if the state is saved, of the version it created
    saved_at TEXT NOT NULL,
    browser TEXT NOT NULL,  -- such as "Firefox on Android"
    title TEXT NOT NULL,  -- as typed, or a line break and the beginning of the content
    bytes INTEGER NOT NULL,  -- size of the fields; 0 if the state is saved or nothing is typed
    fields TEXT NOT NULL  -- a JSON object of strings, as typed
) STRICT;

CREATE INDEX draft_copy_draft ON draft_copy (draft, saved_at);

-- Proposed changes to posts: the pending ones, and those refused within the last hour
CREATE TABLE proposal (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    post_id INTEGER NOT NULL,
    author TEXT NOT NULL,  -- the name of a key
    created_at TEXT NOT NULL,
    bytes INTEGER NOT NULL,  -- size of the changes as JSON
    tags TEXT NOT NULL DEFAULT '',  -- the proposed tags, as a JSON array; '' if the proposal does not change the tags
    base TEXT NOT NULL,  -- a JSON object: the post's tags, and hashes of its other fields, at the time of the proposal
    document TEXT NOT NULL,  -- the Proposal as JSON, which is sent unchanged
    refused_at TEXT  -- when the owner refused it, which can be undone for an hour; NULL while it is pending
) STRICT;

CREATE INDEX proposal_post ON proposal (post_id, created_at, id);

CREATE INDEX proposal_created ON proposal (created_at, id);

-- The authors of proposals that were applied; undo needs them
CREATE TABLE applied_proposal (
    post_id INTEGER NOT NULL,
    version INTEGER NOT NULL,  -- the version of the post that the proposal replaced
    author TEXT NOT NULL,  -- the name of the key that made the proposal
    applied_at TEXT NOT NULL,
    PRIMARY KEY (post_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE post (
    id INTEGER NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status = 'published' OR status = 'draft' OR status = 'scheduled' OR status = 'archived'),
    published_at TEXT,
    updated_at TEXT NOT NULL DEFAULT '',
    version INTEGER NOT NULL DEFAULT 1,  -- counts changes, except site-wide tag changes and scheduled publications
    since TEXT NOT NULL DEFAULT '',  -- when this version was written
    author TEXT NOT NULL DEFAULT '',  -- who wrote this version: the name of a key, settings, import, rebase or undo
    document TEXT NOT NULL  -- the Post as JSON, which is sent unchanged; the columns before `version` copy its fields
) STRICT;

CREATE INDEX post_status ON post (status, id);

CREATE INDEX post_published ON post (status, published_at, id) WHERE published_at IS NOT NULL;

CREATE INDEX post_updated ON post (status, updated_at, id);  -- for lists sorted by `updated_at`, `blogapi undo` and the deletion of images

-- Slugs under which posts used to be published: earlier slugs, and the slug of a post that was unpublished. Each slug
-- still leads to its post, and no other post can use it.
CREATE TABLE former_slug (
    slug TEXT NOT NULL PRIMARY KEY,
    post_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Earlier versions of posts, and posts in the trash. The state `deleted` means that the post is in the trash, and
-- `restored` that it was there before.
CREATE TABLE revision (
    post_id INTEGER NOT NULL,
    version INTEGER NOT NULL,
    since TEXT NOT NULL,
    author TEXT NOT NULL,
    until TEXT NOT NULL,
    replaced_by TEXT NOT NULL,  -- who replaced or deleted it; the same values as in `author`
    state TEXT NOT NULL CHECK (state IN ('replaced', 'deleted', 'restored')),
    document TEXT NOT NULL,  -- the Post as JSON
    PRIMARY KEY (post_id, version)
) STRICT;

CREATE INDEX revision_until ON revision (state, until, post_id);  -- for the trash, and to see where a deleted image was used recently

-- The tags that posts had before a tag was renamed, merged or deleted on the whole site. Undo restores them.
CREATE TABLE retagging (
    post_id INTEGER NOT NULL,
    version INTEGER NOT NULL,  -- the version of the post at that time
    number INTEGER NOT NULL,  -- counts from 0 within each version
    changed_at TEXT NOT NULL,
    author TEXT NOT NULL,
    tags TEXT NOT NULL,  -- a JSON array
    PRIMARY KEY (post_id, version, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX retagging_changed ON retagging (changed_at);

-- The ids of posts that were deleted for good, so that undo can report them
CREATE TABLE purge (
    post_id INTEGER NOT NULL PRIMARY KEY,
    purged_at TEXT NOT NULL
) STRICT;

CREATE INDEX purge_time ON purge (purged_at);

-- There is one index for each sort order, by tag and status. A list with a tag but without a status merges the lists of
-- the four statuses, because another index would cost an additional write for each tag of each post.
CREATE TABLE post_tag (
    tag TEXT NOT NULL,  -- case-folded, so that it is the same for all spellings of a tag
    status TEXT NOT NULL,  -- copy of the post's column
    post_id INTEGER NOT NULL,
    published_at TEXT,  -- copy of the post's column
    name TEXT NOT NULL,  -- the tag as spelled in the post
    PRIMARY KEY (tag, status, post_id)
) STRICT, WITHOUT ROWID;

-- For lists, and for counting published posts by tag
CREATE INDEX post_tag_by_time ON post_tag (status, tag, published_at, post_id) WHERE published_at IS NOT NULL;

CREATE TABLE idempotency (
    digest BLOB NOT NULL,  -- SHA-256 of the name of the API key, or of the secret of a form
    name TEXT NOT NULL,  -- the Idempotency-Key
    request BLOB NOT NULL,  -- SHA-256 of the content of the request; empty for a form
    post_id INTEGER NOT NULL,  -- the post that the request created; 0 if a form created an API key or a webhook
    created_at TEXT NOT NULL,
    PRIMARY KEY (digest, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_age ON idempotency (created_at);

CREATE TABLE webhook (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL,
    events TEXT NOT NULL,  -- a JSON array of event types
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    secret TEXT NOT NULL,  -- stored in plain text, because every delivery is signed with it
    created_at TEXT NOT NULL,
    headers TEXT NOT NULL DEFAULT '{}',  -- a JSON object; its values may be secrets of the receiver
    after_seconds INTEGER NOT NULL DEFAULT 0,  -- delay before a delivery, during which events are merged into it
    body TEXT NOT NULL DEFAULT 'event'  -- format of the request body: event or dispatch
) STRICT;

-- Events. Each is stored once for all webhooks, and kept while it has deliveries.
CREATE TABLE event (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL,  -- random, because after a backup is restored, other events get the same ids again
    type TEXT NOT NULL,
    payload TEXT NOT NULL,  -- JSON, which is sent unchanged
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE delivery (
    webhook_id INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state = 'pending' OR state = 'delivered' OR state = 'failed'),
    attempts INTEGER NOT NULL DEFAULT 0,
    last_status INTEGER,
    last_error TEXT,
    repeats INTEGER NOT NULL DEFAULT 0,  -- number of redeliveries, so that an attempt in progress notices a new one
    next_attempt_at TEXT,  -- set while pending; '' means at once, so that a changed clock does not change the order
    PRIMARY KEY (webhook_id, event_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_due ON delivery (webhook_id, next_attempt_at, event_id) WHERE state = 'pending';

-- Images, without their content
CREATE TABLE image (
    id TEXT NOT NULL PRIMARY KEY,  -- first 32 hexadecimal digits of the SHA-256 of its content
    upload TEXT NOT NULL,  -- key of its parts
    name TEXT NOT NULL,
    type TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    width INTEGER NOT NULL,  -- as displayed, after rotation
    height INTEGER NOT NULL,
    created_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX image_created ON image (created_at, id);

-- The content of images and of unfinished uploads
CREATE TABLE image_part (
    upload TEXT NOT NULL,  -- the start time of the upload and random digits
    number INTEGER NOT NULL,  -- counts from 0
    content BLOB NOT NULL,  -- 256 KiB, except that the last part may be shorter
    PRIMARY KEY (upload, number)
) STRICT;

-- Unfinished uploads, and deleted images whose parts still exist. Pruning deletes the parts of these.
CREATE TABLE upload (
    name TEXT NOT NULL PRIMARY KEY
) STRICT;

-- URLs on other hosts from which imports fetched images. Some of these images may have been deleted since.
CREATE TABLE fetched_image (
    url BLOB NOT NULL PRIMARY KEY,  -- SHA-256 of the URL
    image_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The time of the last successful `blogapi backup`, in a single row that the first backup creates
CREATE TABLE backup (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    made_at TEXT NOT NULL
) STRICT;

-- The total size of all images, in a single row that the first image creates
CREATE TABLE image_total (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    bytes INTEGER NOT NULL
) STRICT;

-- Contains a row while the service indexes all posts again, newest first
CREATE TABLE search_rebuild (
    below INTEGER NOT NULL  -- posts with lower ids may not be indexed yet
) STRICT;

-- On SQLite

PRAGMA application_id = 0x626c6f67;  -- "blog", which marks the file as ours

-- Keeps the ids of deleted posts from being reused. AUTOINCREMENT would write an additional page for each new post.
CREATE TABLE deleted_post (
    greatest_id INTEGER NOT NULL
) STRICT;

INSERT INTO deleted_post VALUES (0);

CREATE TRIGGER newest_post_deleted AFTER DELETE ON post WHEN NOT EXISTS (SELECT 1 FROM post WHERE id > OLD.id)
BEGIN
    UPDATE deleted_post SET greatest_id = max(greatest_id, OLD.id);
END;

-- The highest ids ever used
INSERT INTO sqlite_sequence (name, seq) VALUES ('webhook', 0), ('event', 0), ('proposal', 0);

-- The words of posts
CREATE VIRTUAL TABLE search USING fts5 (title, text, columnsize = 0, tokenize = 'ascii');

-- Keep FTS5 from merging during a write, which could take 60 ms. A background step merges instead.
INSERT INTO search (search, rank) VALUES ('automerge', 0), ('crisismerge', 1000), ('usermerge', 8);

CREATE TABLE search_made (
    unicode TEXT NOT NULL  -- the rules by which all words were indexed; there is no row before the first indexing
) STRICT;
