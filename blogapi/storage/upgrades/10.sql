-- From version 9 to 10 (release 1.3.0): images that imports fetched

CREATE TABLE fetched_image (url BLOB NOT NULL PRIMARY KEY, image_id TEXT NOT NULL) STRICT, WITHOUT ROWID;
