DROP TABLE image, image_part, upload, image_total, retagging, webhook_options, owner_session, purge, preview_link;
DROP INDEX post_tag_by_time;
DROP TABLE search, search_pending;
CREATE TABLE search (post_id bigint);
CREATE TABLE tag (tag text);
CREATE INDEX post_tag_published ON post_tag (tag);
UPDATE blogapi SET version = 1;
