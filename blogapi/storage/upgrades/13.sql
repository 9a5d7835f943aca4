-- From version 12 to 13, of release 1.4.0: due posts are found by their status and date; webhooks have columns for their
-- options, which only some of them had

DROP TABLE schedule;

DROP INDEX post_tag_scheduled;

ALTER TABLE webhook ADD COLUMN headers TEXT NOT NULL DEFAULT '{}';

ALTER TABLE webhook ADD COLUMN after_seconds INTEGER NOT NULL DEFAULT 0;

ALTER TABLE webhook ADD COLUMN body TEXT NOT NULL DEFAULT 'event';

UPDATE webhook SET
    headers = (SELECT headers FROM webhook_options WHERE webhook_id = id),
    after_seconds = (SELECT after_seconds FROM webhook_options WHERE webhook_id = id),
    body = (SELECT body FROM webhook_options WHERE webhook_id = id)
WHERE id IN (SELECT webhook_id FROM webhook_options);

DROP TABLE webhook_options;
