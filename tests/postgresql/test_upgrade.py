"""Upgrading PostgreSQL databases of earlier releases."""

import psycopg
import pytest

from blogapi.engines import engine_for
from blogapi.storage import keys
from blogapi.storage.errors import Unavailable
from blogapi.storage.upgrades import VERSION
from blogapi.wings.copy import copy
from tests.databases import execute, opened
from tests.service import add_key
from tests.storage.releases import (
    KEPT,
    OLDER,
    RELEASES,
    UNRELEASED,
    due_posts_are_published,
    unpacked,
    unsaved_text_is_kept,
)

# Turns a new PostgreSQL database into one of an earlier version
TO_VERSION_12 = """
    DROP TABLE draft_copy;
    CREATE TABLE draft_copy (
        id text COLLATE "C" NOT NULL PRIMARY KEY, post_id bigint, state text COLLATE "C" NOT NULL
        CHECK (state IN ('open', 'continued', 'aside', 'saved', 'discarded')), number bigint NOT NULL,
        etag text COLLATE "C" NOT NULL, next text COLLATE "C" NOT NULL, saved_at text COLLATE "C" NOT NULL,
        browser text COLLATE "C" NOT NULL, title text COLLATE "C" NOT NULL, bytes bigint NOT NULL,
        fields text COLLATE "C" NOT NULL
    );
    CREATE INDEX draft_copy_post ON draft_copy (post_id, state, saved_at);
    CREATE TABLE schedule (post_id bigint NOT NULL PRIMARY KEY, published_at text NOT NULL);
    CREATE INDEX post_tag_scheduled ON post_tag (post_id, tag) WHERE status = 'scheduled';
    ALTER TABLE webhook DROP headers, DROP after_seconds, DROP body;
    CREATE TABLE webhook_options (
        webhook_id bigint NOT NULL PRIMARY KEY, headers text COLLATE "C" NOT NULL, after_seconds bigint NOT NULL,
        body text COLLATE "C" NOT NULL
    );
    CREATE TABLE search_label (published bigint);
    DROP INDEX search_words;
    ALTER TABLE search ADD published boolean, ADD labels bigint[];
    CREATE INDEX search_published ON search (post_id) WHERE published;
    CREATE INDEX search_others ON search (post_id) WHERE NOT published;
    UPDATE blogapi SET unicode = 'words 3';
    UPDATE blogapi SET version = 12;
"""
TO_VERSION_11 = f"""{TO_VERSION_12}
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
"""
TO_VERSION_10 = f"""{TO_VERSION_11}
    DROP TABLE proposal, applied_proposal;
    ALTER TABLE draft_copy DROP CONSTRAINT draft_copy_state_check;
    ALTER TABLE draft_copy
        ADD CHECK (state IN ('open', 'continued', 'aside', 'saved', 'discarded', 'proposed', 'applied'));
    CREATE INDEX draft_copy_proposed ON draft_copy (saved_at, id) WHERE state = 'proposed';
    UPDATE blogapi SET version = 10;
"""
TO_VERSION_7 = f"""{TO_VERSION_11}
    DROP TABLE proposal, applied_proposal, fetched_image, search_label, search_rebuild, search;
    CREATE TABLE search (post_id bigint);
    CREATE TABLE search_pending (post_id bigint);
    CREATE TABLE search_retagged (name text);
    UPDATE blogapi SET version = 7, unicode = 'words 2';
"""
TO_VERSION_6 = f"""{TO_VERSION_7}
    DELETE FROM former_slug;
    ALTER TABLE post DROP CONSTRAINT post_status_check;
    ALTER TABLE post ADD CHECK (status IN ('published', 'draft', 'scheduled', 'archived'));
    ALTER TABLE delivery DROP CONSTRAINT delivery_state_check;
    ALTER TABLE delivery ADD CHECK (state IN ('pending', 'delivered', 'failed'));
    ALTER TABLE delivery ALTER attempts DROP DEFAULT, ALTER repeats DROP DEFAULT;
    UPDATE blogapi SET version = 6;
"""
TO_VERSION_5 = f"""{TO_VERSION_6}
    DROP TABLE former_slug, draft_copy, search_retagged;
    ALTER TABLE api_key DROP CONSTRAINT api_key_scope_check;
    ALTER TABLE api_key ADD CHECK (scope IN ('full', 'read-only', 'published-only'));
    UPDATE blogapi SET version = 5;
"""
TO_VERSION_1 = f"""{TO_VERSION_5}
    DROP TABLE image, image_part, upload, image_total, retagging, webhook_options, owner_session, purge, preview_link;
    DROP INDEX post_tag_by_time;
    DROP TABLE search, search_pending;
    CREATE TABLE search (post_id bigint);
    CREATE TABLE tag (tag text);
    CREATE INDEX post_tag_published ON post_tag (tag);
    UPDATE blogapi SET version = 1;
"""


def test_every_upgrade_since_1_3_0_can_be_undone_here():
    missing = [f"TO_VERSION_{version - 1}" for version in range(12, VERSION + 1)]
    missing = [name for name in missing if name not in globals()]
    assert missing == [], "add what undoes the upgrade, and let the next lower version begin with it"


# What turns a new database into one of each release; 10 was never released.
DOWNGRADES = {"1.0.0": TO_VERSION_1, "1.1.1": TO_VERSION_5, "1.2.0": TO_VERSION_6, "1.2.1": TO_VERSION_7}
DOWNGRADES |= {"10": TO_VERSION_10, "1.3.0": TO_VERSION_11}


@pytest.mark.slow
@pytest.mark.parametrize("downgrade", DOWNGRADES.values(), ids=DOWNGRADES)
def test_a_postgresql_database_is_upgraded(url, downgrade):
    state = (
        "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name"
        " FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, column_name",
        "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY 1",
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint ORDER BY 1, 2",
    )
    with opened(url) as database:
        add_key(database, "old")
    with psycopg.connect(url, autocommit=True) as connection:
        before = [connection.execute(query).fetchall() for query in state]
        connection.execute(downgrade)
        with pytest.raises(Unavailable, match=OLDER):
            engine_for(url).open(create=False)
        with opened(url) as database:
            add_key(database, "agent", "drafts-only")
            assert [key.name for key in keys.listing(database)] == ["agent", "old"]
        assert [connection.execute(query).fetchall() for query in state] == before
        assert connection.execute("SELECT version FROM blogapi").fetchone() == (VERSION,)


@pytest.mark.slow
@pytest.mark.parametrize(("release", "check", "tables"), [*KEPT, ("1.2.1", unsaved_text_is_kept, ["draft_copy"])])
def test_a_postgresql_upgrade_keeps_what_waits(url, tmp_path, release, check, tables):
    path = unpacked((RELEASES | UNRELEASED)[release], tmp_path)
    rows = {table: execute(path, f"SELECT * FROM {table}") for table in tables}
    for table in tables:
        execute(path, f"DELETE FROM {table}")
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        copy(engine_for(path), engine_for(url))
        cursor.execute(DOWNGRADES[release])
        for table in tables:
            values = ", ".join(["%s"] * len(rows[table][0]))
            cursor.executemany(f"INSERT INTO {table} VALUES ({values})", rows[table])
    check(url)


@pytest.mark.slow
def test_the_first_read_after_a_copy_to_postgresql_publishes_what_is_due(url, tmp_path):
    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    copy(engine_for(unpacked(7, tmp_path)), engine_for(url))
    due_posts_are_published(url)
