DROP TABLE proposal, applied_proposal;
ALTER TABLE draft_copy DROP CONSTRAINT draft_copy_state_check;
ALTER TABLE draft_copy
    ADD CHECK (state IN ('open', 'continued', 'aside', 'saved', 'discarded', 'proposed', 'applied'));
CREATE INDEX draft_copy_proposed ON draft_copy (saved_at, id) WHERE state = 'proposed';
UPDATE blogapi SET version = 10;
