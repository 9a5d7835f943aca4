"""Make the sample of a release: a compressed database that tests/storage/test_upgrade.py upgrades.

Run it in a checkout of the release, and name the tables that have no rows in the pull request:

    .venv/bin/python -m tests.make_sample tests/samples/blog-13.db.gz
"""

import gzip
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from PIL import Image

from blogapi import create_app
from blogapi.config import Config
from blogapi.storage import keys
from tests.images.pictures import png
from tests.owner.pages import enter, view

KEY = "blog_" + "A" * 43
# The requests that fill the database: method, path, body
REQUESTS = [
    *[("POST", "posts", {"title": f"Post {number}", "content": "Some words", "tags": ["Trip"]}) for number in (0, 2)],
    ("PATCH", "posts/1", {"title": "Post 1", "status": "published"}),
    ("PATCH", "posts/1", {"slug": "moved"}),
    ("DELETE", "posts/2", None),
    ("POST", "posts", {"title": "Draft", "content": "More words", "tags": ["Rye"], "params": {"author": "Ada"}}),
    (
        "PUT",
        "posts/by-slug/later",
        {"title": "C", "content": "D", "status": "scheduled", "published_at": "2999-01-01T00:00:00Z"},
    ),
    ("PATCH", "tags/trip", {"name": "Travel"}),
    ("POST", "webhooks", {"url": "https://8.8.8.8/", "after_seconds": 30, "headers": {"X-Token": "abc"}}),
    ("POST", "posts/1/proposals", {"excerpt": "Waiting"}),
    ("POST", "posts/3/proposals", {"content": "Applied"}),
    ("POST", "posts/3/proposals/2/apply", None),
    ("PATCH", "posts/1", {"excerpt": "Changed after all"}),
]


def fill(path: Path) -> None:
    """Write a database with a row in as many tables as requests can fill."""
    app = create_app(Config(database=path))
    database, client = app.extensions["blogapi"].database, app.test_client()
    database.write(keys.add, "tests", KEY)
    headers = {"Authorization": f"Bearer {KEY}"}
    for number, (method, name, body) in enumerate(REQUESTS):
        once = {"Idempotency-Key": str(number)} if (method, name) == ("POST", "posts") else {}
        answer = client.open(f"/v1/{name}", method=method, json=body, headers=headers | once)
        assert answer.status_code < 300, (name, answer.text)
    picture = png(Image.new("RGB", (9, 9), "red"))
    assert (
        client.post("/v1/images?name=red.png", data=picture, headers=headers, content_type="image/png").status_code
        == 201
    )
    owner = enter(app, database)
    view(owner, "/settings/posts/3/edit").press("Save draft", title="Saved on the page")
    database.close()


def empty_tables(path: Path) -> list[str]:
    """Return the tables without rows."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return [name for name in names if not connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()]


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blog.db"
        fill(path)
        print("without rows:", ", ".join(empty_tables(path)))
        Path(target).write_bytes(gzip.compress(path.read_bytes()))


if __name__ == "__main__":
    main(sys.argv[1])
