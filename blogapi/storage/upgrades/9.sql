-- From version 8 to 9 (release 1.3.0): each write indexes its words in its transaction. The service indexes all posts
-- again, because the rules for words have changed.

DROP TABLE search_pending;

DROP TABLE search_retagged;

CREATE TABLE search_label (
    published INTEGER NOT NULL, word TEXT NOT NULL, id INTEGER NOT NULL, words TEXT NOT NULL, PRIMARY KEY (published, word,
    id)
) STRICT, WITHOUT ROWID;

CREATE INDEX search_label_id ON search_label (id);

CREATE TABLE search_rebuild (
    below INTEGER NOT NULL
) STRICT;

-- On PostgreSQL

DROP TABLE search;

CREATE TABLE search (
    post_id bigint NOT NULL PRIMARY KEY,
    published boolean NOT NULL,
    title text COLLATE "C" NOT NULL,
    text text COLLATE "C" NOT NULL,
    words text COLLATE "C" NOT NULL,
    labels bigint[] NOT NULL
);

ALTER TABLE search ALTER text SET STORAGE EXTERNAL, ALTER words SET STORAGE EXTERNAL;

CREATE INDEX search_published ON search USING gin (
    array_to_tsvector(string_to_array(btrim(title), ' ')),
    array_to_tsvector(string_to_array(words, ' '))
) WITH (gin_pending_list_limit = 16384) WHERE published;

CREATE INDEX search_others ON search USING gin (
    array_to_tsvector(string_to_array(btrim(title), ' ')),
    array_to_tsvector(string_to_array(words, ' '))
) WITH (gin_pending_list_limit = 16384) WHERE NOT published;
