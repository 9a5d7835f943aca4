DROP TABLE draft_copy;
CREATE TABLE draft_copy (
    id text COLLATE "C" NOT NULL PRIMARY KEY, post_id bigint, state text COLLATE "C" NOT NULL
    CHECK (state IN ('open', 'continued', 'aside', 'saved', 'discarded')), number bigint NOT NULL,
    etag text COLLATE "C" NOT NULL, next text COLLATE "C" NOT NULL, saved_at text COLLATE "C" NOT NULL,
    browser text COLLATE "C" NOT NULL, title text COLLATE "C" NOT NULL, bytes bigint NOT NULL,
    fields text COLLATE "C" NOT NULL
);
CREATE INDEX draft_copy_post ON draft_copy (post_id, state, saved_at);
CREATE TABLE schedule (post_id bigint NOT NULL PRIMARY KEY, published_at text NOT NULL);
CREATE INDEX post_tag_scheduled ON post_tag (post_id, tag) WHERE status = 'scheduled';
ALTER TABLE webhook DROP headers, DROP after_seconds, DROP body;
CREATE TABLE webhook_options (
    webhook_id bigint NOT NULL PRIMARY KEY, headers text COLLATE "C" NOT NULL, after_seconds bigint NOT NULL,
    body text COLLATE "C" NOT NULL
);
CREATE TABLE search_label (published bigint);
DROP INDEX search_words;
ALTER TABLE search ADD published boolean, ADD labels bigint[];
CREATE INDEX search_published ON search (post_id) WHERE published;
CREATE INDEX search_others ON search (post_id) WHERE NOT published;
UPDATE blogapi SET unicode = 'words 3';
UPDATE blogapi SET version = 12;
