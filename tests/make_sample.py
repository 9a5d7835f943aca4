"""Make the sample of a release: a compressed database that tests/storage/test_upgrade.py upgrades.

Run it in a checkout of the release, and add both files that it writes:

    git worktree add ../released v1.4.0 && cd ../released
    ../blogapi/.venv/bin/python -m tests.make_sample ../blogapi/tests/samples
"""

import gzip
import json
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from PIL import Image

from blogapi import create_app
from blogapi.config import Config
from blogapi.storage import keys
from blogapi.storage.models import Backup
from blogapi.storage.upgrades import VERSION
from blogapi.wings.owner import sessions
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


PATHS = "posts", "posts/1/revisions/1", "trash", "tags", "posts?q=words", "webhooks", "images"
# Tables that stay empty, because they are for work in progress or for operations that this script does not use
EMPTY = {"fetched_image", "purge", "search_rebuild", "upload"}


def answers(client):
    """Return what a client sees of a database."""
    return [client.get(f"/v1/{path}").json for path in PATHS]


def summary(answers):
    """The titles of the posts, and of those found by a word; the tags, the images, and the delay of the webhook."""
    posts, _, _, tags, matches, webhooks, images = answers
    shown = [[post["title"] for post in posts], [post["title"] for post in matches]]
    shown += [[f"{tag['name']} {tag['posts']}" for tag in tags], [image["name"] for image in images]]
    return [*map(", ".join, shown), webhooks[0].get("after_seconds")]


def fill(path: Path) -> list:
    """Write a database with rows in all tables but EMPTY; return what a client sees of it."""
    app = create_app(Config(database=path))
    database, client = app.extensions["blogapi"].database, app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {KEY}"
    database.write(keys.add, "tests", KEY)
    for number, (method, name, body) in enumerate(REQUESTS):
        once = {"Idempotency-Key": str(number)} if (method, name) == ("POST", "posts") else {}
        answer = client.open(f"/v1/{name}", method=method, json=body, headers=once)
        assert answer.status_code < 300, (name, answer.text)
    picture = png(Image.new("RGB", (9, 9), "red"))
    assert client.post("/v1/images?name=red.png", data=picture, content_type="image/png").status_code == 201
    owner = enter(app)
    view(owner, "/settings/posts/3/edit").press("Save draft", title="Saved on the page")
    database.write(sessions.share, 3)
    database.write(lambda tx: tx.execute(Backup.insert(id=1, made_at=tx.now)))
    seen = summary(answers(client))
    database.close()
    return seen


def empty_tables(path: Path) -> set[str]:
    """Return the tables without rows."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name for name in names if not connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone()}


def main(samples: str) -> None:
    """Write the database, and what a client sees of it, to the folder with the samples."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "blog.db"
        seen = fill(path)
        assert empty_tables(path) <= EMPTY, f"add requests to REQUESTS that fill {empty_tables(path) - EMPTY}"
        Path(samples, f"blog-{VERSION}.db.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        Path(samples, f"blog-{VERSION}.json").write_text(f"{json.dumps(seen)}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
