-- From version 12 to 13, of release 1.4.0: due posts are found by their status and date

DROP TABLE schedule;

DROP INDEX post_tag_scheduled;
