"""`blogapi backup DIR --keep`: names, which backups are removed, and what happens after a successful backup."""

import os
from datetime import datetime, timedelta

from blogapi.cli.backup import BACKUP_NAME, superfluous, time_of
from tests.databases import execute
from tests.receiver import Receiver
from tests.service import free_port


def at(time):
    return f"blog-{time}T03-10-00Z.db"


def test_the_last_backups_of_days_weeks_and_months_are_kept():
    start = datetime(2024, 1, 1, 3, 10)
    names = {(start + timedelta(days=day, hours=hour)).strftime(BACKUP_NAME) for day in range(1062) for hour in (0, 12)}
    kept = sorted(names - superfluous(names, {"d": 3, "w": 2, "m": 4, "y": 2}))
    evening = "T15-10-00Z.db"
    days, weeks = ["2026-11-25", "2026-11-26", "2026-11-27"], ["2026-11-22"]  # The week of the 27th has not ended.
    months, years = ["2026-08-31", "2026-09-30", "2026-10-31"], ["2025-12-31"]
    assert kept == [f"blog-{day}{evening}" for day in sorted(years + months + weeks + days)]
    assert superfluous(names - superfluous(names, {"d": 3}), {"d": 3}) == set()


def test_gaps_are_bridged_and_the_newest_is_always_kept():
    names = {at(day) for day in ("2020-02-29", "2020-03-01", "2026-11-27")}
    for periods, expected in (({"d": 2}, 1), ({"m": 1}, 2), ({"y": 9}, 1), ({"d": 9999}, 0), ({"w": 2}, 1)):
        gone = superfluous(names, periods)
        assert (len(gone), at("2026-11-27") in gone) == (expected, False), periods
    assert superfluous([], {"d": 1}) == set()


def test_files_with_other_names_are_left_alone():
    others = ["blog.db", "blog-2026-11-20.db", "blog-2026-1-2T3-4-5Z.db", "blog-2026-13-20T03-10-00Z.db", "x" * 5000]
    others += [at("2026-11-20") + end for end in ("-wal", ".part", "\n")] + [f"x{at('2026-11-20')}", "blog-٢٠٢٦-11"]
    assert [time_of(name) for name in others] == [None] * len(others)
    assert superfluous([*others, at("2026-11-20")], {"d": 1}) == set()


def test_a_backup_into_a_folder_is_named_checked_and_announced_and_kept_beside_one_from_the_future(run, storage, write):
    folder = write(dict.fromkeys((at("2020-01-01"), at("2020-01-02"), at("2999-01-01"), "mine.db"), "old"))
    (folder / at("2020-01-03")).mkdir()
    (folder / at("2020-01-04")).symlink_to("mine.db")
    status, (line,), error = run("backup", folder, "--keep", "1d")
    *_, new, future = sorted(folder.glob("blog-*.db"))
    assert (status, error) == (0, [])
    assert line == f"wrote {new}, {new.stat().st_size:,} bytes; removed 2 old ones"
    kept = {new.name, future.name, "mine.db", at("2020-01-03"), at("2020-01-04")}
    assert {path.name for path in folder.iterdir()} == kept
    assert execute(new, "PRAGMA integrity_check") == [("ok",)]


def test_the_leftover_of_a_killed_backup_is_removed_once_it_has_not_grown_for_an_hour(run, storage, write):
    killed, named, growing, other = at("2026-11-20") + ".ab_12.part", "new.db.ab_12.part", "new.db.cd.part", "film.part"
    folder = write(dict.fromkeys((killed, named, growing, other), ""))
    for name in (killed, named, other):
        os.utime(folder / name, (0, 0))
    assert run("backup", folder / "new.db")[0] == 0
    assert {path.name for path in folder.iterdir()} == {"new.db", growing, other}


def test_the_time_of_a_backup_is_stored_if_the_database_can_be_written(run, path, storage, tmp_path):
    assert run("backup", tmp_path / "a.db")[0] == 0
    assert execute(path, "SELECT count(*) FROM backup WHERE made_at > '2026'") == [(1,)]
    execute(path, "PRAGMA user_version = 11")
    status, _, error = run("backup", tmp_path / "b.db")
    assert (status, error[0][:62]) == (0, "The backup was written, but its time could not be recorded: ca")


def test_after_a_success_a_file_is_touched_and_a_url_is_requested_which_may_fail(run, storage, tmp_path):
    stamp = tmp_path / "stamp"
    with Receiver() as receiver:
        assert run("backup", tmp_path, "--quiet", "--touch", stamp, "--ping", receiver.url) == (0, [], [])
    assert (stamp.exists(), [message.path for message in receiver.messages]) == (True, ["/hook"])
    address = f"http://127.0.0.1:{free_port()}/ping"
    status, _, (error,) = run("backup", tmp_path / "copy.db", "--ping", address)
    assert (status, (tmp_path / "copy.db").exists()) == (1, True)
    assert error.startswith(f"the backup was written, but {address} did not respond: ")


def test_a_backup_that_fails_removes_nothing_and_announces_nothing(run, storage, write, tmp_path, monkeypatch):
    old = {at("2020-01-01"), at("2020-01-02")}
    folder = write(dict.fromkeys(old, "old"))
    (tmp_path / "damaged.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    monkeypatch.setenv("BLOGAPI_DATABASE", str(tmp_path / "damaged.db"))
    with Receiver() as receiver:
        options = ["--keep", "1d", "--touch", tmp_path / "stamp", "--ping", receiver.url]
        outcome = run("backup", folder, *options)
    assert outcome == (1, [], [f"cannot copy the database {tmp_path}/damaged.db: file is not a database"])
    assert (receiver.messages, {path.name for path in folder.iterdir()}) == ([], old)
    assert not (tmp_path / "stamp").exists()


def test_an_invalid_option_is_refused_before_anything_is_written(run, storage, tmp_path):
    folder, no_periods = str(tmp_path), ("", "7", "d", "0d", "7d,", "7x", "7d 4w", "12345d", "-1d", "٧d", "7d" * 9)
    for arguments in (
        *((folder, "--keep", text) for text in no_periods),
        (f"{folder}/none", "--keep", "7d"),
        (f"{folder}/none/",),
        (folder, "--touch", folder),
        ("",),
        (folder, "--ping", "ftp://a.example"),
        (folder, "--ping", "healthchecks.example"),
    ):
        status, output, error = run("backup", *arguments)
        assert (status, output) == (2, []), arguments
        assert "Invalid value" in error[-1], error
    assert list(tmp_path.glob("blog-*")) == []
