"""The status and date of a post in files, imported and pushed."""

import pytest

from tests.blogs import write_files
from tests.cli.conftest import path, storage, stored
from tests.cli.conftest import run as run_here
from tests.posts.statuses import FILES, NO, TABLE, given, outcome

__all__ = ["path", "run_here", "storage"]


@pytest.fixture
def files(tmp_path):
    """A folder with a file for each row of the table, and the name of each row's file."""
    names = {row: f"{row[0] or 'none'}-{row[1][:4] or 'none'}" for row in TABLE}
    texts = {}
    for row, name in names.items():
        lines = "".join(f"{field}: {value}\n" for field, value in given(*row).items())
        texts[f"{name}.md"] = f"---\ntitle: {name}\n{lines}---\n\nWords.\n"
    return write_files(tmp_path / "files", texts), names


def test_an_import_takes_all_statuses_and_dates(files, run_here, storage):
    folder, names = files
    run_here("import", "--publish", folder)
    check(names, stored(storage))


@pytest.mark.slow
def test_a_push_takes_the_same_as_an_import(files, run, there):
    folder, names = files
    run("push", "--publish", folder)
    check(names, there())


@pytest.mark.parametrize(("year", "public"), [(2026, "published"), (2099, "scheduled")])
def test_a_date_publishes_a_new_file_only_if_its_program_is_known_or_with_publish(run, there, tmp_path, year, public):
    here = write_files(tmp_path / "plain", {"notes/a.md": f"---\ndate: {year}-01-02\n---\n# A\n"})
    said = "created notes/a.md: a draft, because its program is unknown: --publish publishes it"
    assert run("push", here)[1][0] == said
    assert there()["a"].get("published_at") == ("2026-01-02T00:00:00Z" if public == "published" else None)
    file = (here / "notes").rename(here / "_posts") / "a.md"  # Now its program is known.
    run("push", here)
    for option, status in (("--quiet", "draft"), ("--publish", public), ("--quiet", public)):
        file.write_text(f"{file.read_text()} More.\n")
        assert "updated _posts/a.md" in run("push", here, option)[1]
        assert there()["a"]["status"] == status
    site = write_files(tmp_path / "jekyll", {"_posts/2026-01-02-b.md": "# B\n"})
    run("push", site)
    assert there()["b"]["status"] == "published"


def check(names, posts):
    for row, name in names.items():
        seen = outcome(posts[name]) if name in posts else NO
        assert seen == TABLE[row][FILES], row
