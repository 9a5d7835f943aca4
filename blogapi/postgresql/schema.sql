-- The statements for PostgreSQL only. They run after the statements that are translated from schema.sql.

CREATE TABLE blogapi (  -- marks the database as ours
    version integer NOT NULL,
    unicode text NOT NULL  -- the rules by which all words were indexed; '' before the first indexing
);

INSERT INTO blogapi VALUES (0, '');

-- The highest ids ever used. Sequences would leave gaps.
CREATE TABLE counter (
    name text NOT NULL PRIMARY KEY,
    last bigint NOT NULL
);

INSERT INTO counter VALUES ('post', 0), ('webhook', 0), ('event', 0), ('proposal', 0);

CREATE FUNCTION next_id(kind text) RETURNS bigint LANGUAGE sql AS
$$ UPDATE counter SET last = last + 1 WHERE name = kind RETURNING last $$;

ALTER TABLE post ALTER id SET DEFAULT next_id('post');

ALTER TABLE webhook ALTER id SET DEFAULT next_id('webhook');

ALTER TABLE event ALTER id SET DEFAULT next_id('event');

ALTER TABLE proposal ALTER id SET DEFAULT next_id('proposal');

-- The number of requests that each key sent in its latest window. The table is UNLOGGED, so the counts start over after
-- PostgreSQL has crashed.
CREATE UNLOGGED TABLE hits (
    digest bytea NOT NULL PRIMARY KEY REFERENCES api_key ON UPDATE CASCADE ON DELETE CASCADE,
    number bigint NOT NULL,  -- number of the window: the Unix time of its start divided by 60
    hits bigint NOT NULL
) WITH (fillfactor = 50);

ALTER TABLE image_part ALTER content SET STORAGE EXTERNAL;  -- uncompressed, so that a piece can be read alone

-- The words of all posts. Each word has a space before and after it.
CREATE TABLE search (
    post_id bigint NOT NULL PRIMARY KEY,
    title text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,  -- includes the title
    words text COLLATE "C" NOT NULL  -- each word only once; otherwise, the index would have to sort all repetitions
);

-- Store the words uncompressed, because compressing those of a large post would take longer than the rest of the write.
ALTER TABLE search ALTER text SET STORAGE EXTERNAL, ALTER words SET STORAGE EXTERNAL;

-- The high limit on pending entries (in kB) keeps writes from merging them, which can take 0.2 s. A background step
-- merges them instead.
CREATE INDEX search_words ON search USING gin (
    array_to_tsvector(string_to_array(btrim(title), ' ')),
    array_to_tsvector(string_to_array(words, ' '))
) WITH (gin_pending_list_limit = 16384);

ANALYZE;
