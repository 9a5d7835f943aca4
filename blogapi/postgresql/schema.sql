-- What only PostgreSQL has. The other tables are translated from schema.sql, and come first.

CREATE TABLE blogapi (  -- marks the database as ours
    version integer NOT NULL,
    unicode text NOT NULL  -- the Unicode version with which all words were indexed; '' until then
);

INSERT INTO blogapi VALUES (0, '');

-- The highest ids ever used. A sequence would leave gaps.
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

-- The requests of each key in its latest window. UNLOGGED: after a crash of PostgreSQL, the counts start over.
CREATE UNLOGGED TABLE hits (
    digest bytea NOT NULL PRIMARY KEY REFERENCES api_key ON UPDATE CASCADE ON DELETE CASCADE,
    number bigint NOT NULL,  -- number of the window: the Unix time of its start / 60
    hits bigint NOT NULL
) WITH (fillfactor = 50);

ALTER TABLE image_part ALTER content SET STORAGE EXTERNAL;  -- uncompressed, so a piece can be read without the rest

-- The words of all posts, with a space before and after each word.
CREATE TABLE search (
    post_id bigint NOT NULL PRIMARY KEY,
    title text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,  -- includes the title
    words text COLLATE "C" NOT NULL  -- each word once, for the index, which would sort all repeats
);

-- Compressing the words of a large post would take longer than everything else.
ALTER TABLE search ALTER text SET STORAGE EXTERNAL, ALTER words SET STORAGE EXTERNAL;

-- Pending entries (at most this many kB) are merged outside of transactions, because that can take 0.2 s.
CREATE INDEX search_words ON search USING gin (
    array_to_tsvector(string_to_array(btrim(title), ' ')),
    array_to_tsvector(string_to_array(words, ' '))
) WITH (gin_pending_list_limit = 16384);

ANALYZE;
