DROP TABLE former_slug, draft_copy, search_retagged;
ALTER TABLE api_key DROP CONSTRAINT api_key_scope_check;
ALTER TABLE api_key ADD CHECK (scope IN ('full', 'read-only', 'published-only'));
UPDATE blogapi SET version = 5;
