"""Upgrading PostgreSQL databases of earlier releases."""

from pathlib import Path

import psycopg
import pytest

from blogapi.copy import copy
from blogapi.engines import engine_for
from blogapi.storage import keys
from blogapi.storage.errors import Unavailable
from blogapi.storage.upgrades import VERSION
from tests.databases import execute, opened
from tests.service import add_key
from tests.storage import releases
from tests.storage.releases import RELEASES, UNRELEASED, unpacked

DOWNGRADES = Path(__file__).parent / "downgrades"


def downgrade(version):
    """The statements that turn a new database into a database of this version, one version after another."""
    files = {int(file.stem): file for file in DOWNGRADES.glob("*.sql")}
    return "".join(files[number].read_text() for number in sorted(files, reverse=True) if number >= version)


def test_every_upgrade_since_1_3_0_can_be_undone_here():
    missing = [f"{version}.sql" for version in range(11, VERSION) if not (DOWNGRADES / f"{version}.sql").exists()]
    assert missing == [], "add what undoes the upgrade from this version"


@pytest.mark.slow
@pytest.mark.parametrize("version", (RELEASES | UNRELEASED).values())
def test_a_postgresql_database_is_upgraded(url, version):
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
        connection.execute(downgrade(version))
        with pytest.raises(Unavailable, match=releases.OLDER):
            engine_for(url).open(create=False)
        with opened(url) as database:
            add_key(database, "agent", "drafts-only")
            assert [key.name for key in keys.listing(database)] == ["agent", "old"]
        assert [connection.execute(query).fetchall() for query in state] == before
        assert connection.execute("SELECT version FROM blogapi").fetchone() == (VERSION,)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "check", "tables"), [*releases.KEPT, ("1.2.1", releases.unsaved_text_is_kept, ["draft_copy"])]
)
def test_a_postgresql_upgrade_keeps_pending_work(url, tmp_path, release, check, tables):
    version = (RELEASES | UNRELEASED)[release]
    path = unpacked(version, tmp_path)
    rows = {table: execute(path, f"SELECT * FROM {table}") for table in tables}
    for table in tables:
        execute(path, f"DELETE FROM {table}")
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        copy(engine_for(path), engine_for(url))
        cursor.execute(downgrade(version))
        for table in tables:
            values = ", ".join(["%s"] * len(rows[table][0]))
            cursor.executemany(f"INSERT INTO {table} VALUES ({values})", rows[table])
    check(url)
