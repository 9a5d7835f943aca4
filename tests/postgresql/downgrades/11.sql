DROP TABLE backup, proposal;
CREATE TABLE proposal (
    id bigint NOT NULL PRIMARY KEY, post_id bigint NOT NULL, author text COLLATE "C" NOT NULL,
    created_at text COLLATE "C" NOT NULL, number bigint NOT NULL, bytes bigint NOT NULL,
    base text COLLATE "C" NOT NULL, document text COLLATE "C" NOT NULL
);
CREATE INDEX proposal_post ON proposal (post_id, created_at, number);
CREATE INDEX proposal_created ON proposal (created_at, number);
DELETE FROM counter WHERE name = 'proposal';
UPDATE blogapi SET version = 11;
