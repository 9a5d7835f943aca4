DELETE FROM former_slug;
ALTER TABLE post DROP CONSTRAINT post_status_check;
ALTER TABLE post ADD CHECK (status IN ('published', 'draft', 'scheduled', 'archived'));
ALTER TABLE delivery DROP CONSTRAINT delivery_state_check;
ALTER TABLE delivery ADD CHECK (state IN ('pending', 'delivered', 'failed'));
ALTER TABLE delivery ALTER attempts DROP DEFAULT, ALTER repeats DROP DEFAULT;
UPDATE blogapi SET version = 6;
