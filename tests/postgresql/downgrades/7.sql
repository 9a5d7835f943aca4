DROP INDEX draft_copy_proposed;
ALTER TABLE draft_copy DROP CONSTRAINT draft_copy_state_check;
ALTER TABLE draft_copy ADD CHECK (state IN ('open', 'continued', 'aside', 'saved', 'discarded'));
DROP TABLE fetched_image, search_label, search_rebuild, search;
CREATE TABLE search (post_id bigint);
CREATE TABLE search_pending (post_id bigint);
CREATE TABLE search_retagged (name text);
UPDATE blogapi SET version = 7, unicode = 'words 2';
