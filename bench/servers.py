"""The servers that are measured: the service with so many posts, or another one that wrk is to ask."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from peewee import fn

from blogapi.files.markdown import render
from blogapi.storage import keys, posts
from blogapi.storage.engine import Database, Transaction, engine_for
from blogapi.storage.models import Post
from tests.service import free_port

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
SERVER_CORE, CLIENT_CORE = {0}, {1}
ALL_CORES = SERVER_CORE | CLIENT_CORE
CONTENT = ("Lorem ipsum **dolor** sit amet, consetetur sadipscing.\n" * 20)[:1000]
POST = "/v1/posts/1"
LIST = "/v1/posts?limit=20"


class Result(NamedTuple):
    """What wrk measured: requests a second, and milliseconds."""

    rate: float
    p50: float
    p99: float


class Server:
    """A gunicorn on one core, with what the client needs to know of it."""

    def __init__(self, folder: Path, command: list[str | Path], key: str, **environ: str):
        self.port = free_port()
        self.cores = SERVER_CORE
        self.key = key
        self.log = (folder / f"{self.port}.log").open("w")
        self.environ = os.environ | {"PORT": str(self.port), "BLOGAPI_RATE_LIMIT": "999999999"} | environ
        self.command = [str(part).format(port=self.port) for part in command]

    def start(self) -> float:
        """Start, and return the seconds until the first answer."""
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            self.command,
            cwd=HERE.parent,
            env=self.environ,
            stderr=self.log,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cores),
        )
        while True:
            try:
                self.get("/v1/posts?limit=1")
                return time.perf_counter() - begun
            except OSError:
                time.sleep(0.005)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
            return connection.getresponse().read()
        finally:
            connection.close()

    def etag(self, path: str) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with closing(connection):
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.key}"})
            return connection.getresponse().headers["ETag"]

    def load(self, connections: int, seconds: int, *arguments: str) -> Result:
        """Let wrk send what wrk.lua makes of `arguments`."""
        wrk = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}", "-s", HERE / "wrk.lua"]
        ended = subprocess.run(
            [*wrk, f"http://127.0.0.1:{self.port}", "--", *arguments],
            env=os.environ | {"KEY": self.key},
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, CLIENT_CORE),
        )
        rate, p50, p99, failed = re.search(r"RESULT (\S+) (\S+) (\S+) (\S+)", ended.stdout).groups()
        if failed != "0":
            sys.exit(f"bench: {failed} requests failed: {arguments}; see {self.log.name}")
        return Result(float(rate), float(p50), float(p99))

    def memory(self) -> float:
        """Return the memory of master and worker in MB (PSS)."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        rollups = [Path(f"/proc/{process}/smaps_rollup").read_text() for process in [self.process.pid, *children]]
        return sum(int(re.search(r"^Pss: +(\d+)", rollup, re.MULTILINE)[1]) for rollup in rollups) / 1024


class Blog(Server):
    """The service with a database of so many posts, by default a file."""

    def __init__(self, folder: Path, count: int, database: str | None = None, **settings: str):
        self.database = database or folder / f"{count}.db"
        self.posts = count
        self.folder = folder
        key = keys.new_key()
        with opened(self.database) as database:
            database.write(keys.add, "bench", key)
        self.add(count)
        fields = {
            "title": "A new post, NUMBER",
            "content": CONTENT,
            "tags": ["tag3", "new", "all"],
            "status": "published",
        }
        (folder / "new.json").write_text(json.dumps(fields))
        (folder / "new.md").write_bytes(render(fields))
        settings |= {"BLOGAPI_DATABASE": str(self.database), "BLOGAPI_WEBHOOK_PRIVATE": "true"}
        super().__init__(folder, [BIN / "gunicorn"], key, **settings)

    def add(self, count: int) -> int:
        """Add posts of about 1 kB with three tags each; return the id of the first."""
        with opened(self.database) as database:
            first = (database.row(Post.select(fn.MAX(Post.id)))[0] or 0) + 1
            for start in range(first, first + count, 10_000):
                database.write(add, range(start, min(start + 10_000, first + count)))
        return first

    def list(self, connections: int, seconds: int, path: str = LIST) -> Result:
        return self.load(connections, seconds, "list", path.format(deep=max(self.posts - 50_000, 71)))

    def list_unchanged(self, connections: int, seconds: int) -> Result:
        """Let wrk ask for the list with the entity tag that it has."""
        return self.load(connections, seconds, "list", LIST, self.etag(LIST))

    def create(self, connections: int, seconds: int, file: str = "new.json") -> Result:
        return self.load(connections, seconds, "create", str(self.folder / file))

    def put_unchanged(self, connections: int, seconds: int, file: str) -> Result:
        """Let wrk put the first post as it is, as JSON or as Markdown."""
        post = json.loads(self.get(POST))
        fields = {name: value for name, value in post.items() if name not in ("id", "created_at", "updated_at")}
        path = self.folder / file
        path.write_bytes(render(post) if path.suffix == ".md" else json.dumps(fields).encode())
        return self.load(connections, seconds, "put", f"/v1/posts/by-slug/{post['slug']}", str(path))

    def import_twice(self, count: int) -> tuple[float, ...]:
        """Import a folder of files of 3 kB, and once more; return how many a second."""
        folder = self.folder / "imported"
        folder.mkdir()
        for number in range(count):
            fields = {"title": f"Imported {number}", "content": CONTENT * 3, "tags": ["imported", f"tag{number % 10}"]}
            (folder / f"imported-{number}.md").write_bytes(render(fields))
        rates = []
        for _ in range(2):
            begun = time.perf_counter()
            subprocess.run(
                [BIN / "blogapi", "import", folder],
                env=self.environ,
                check=True,
                capture_output=True,
                preexec_fn=lambda: os.sched_setaffinity(0, CLIENT_CORE),
            )
            rates.append(count / (time.perf_counter() - begun))
        return tuple(rates)

    def delete(self, connections: int, seconds: int) -> Result:
        return self.load(connections, seconds, "delete", str(self.add(seconds * 7000)))


class TwoServices(Blog):
    """Two services on one database; of sixteen connections each has a half."""

    def __init__(self, folder: Path, count: int, database: str):
        super().__init__(folder, count, database)
        self.other = Server(folder, [BIN / "gunicorn"], self.key, BLOGAPI_DATABASE=database)

    def start(self) -> float:
        self.other.cores = self.cores
        self.other.start()
        return super().start()

    def stop(self) -> None:
        self.other.stop()
        super().stop()

    def load(self, connections: int, seconds: int, *arguments: str) -> Result:
        if connections == 1 or arguments[0] == "delete":  # Each of them would delete the same posts.
            return super().load(connections, seconds, *arguments)
        with ThreadPoolExecutor(1) as pool:
            others = pool.submit(self.other.load, connections // 2, seconds, *arguments)
            own = super().load(connections // 2, seconds, *arguments)
            other = others.result()
        return Result(own.rate + other.rate, (own.p50 + other.p50) / 2, max(own.p99, other.p99))


@contextmanager
def opened(database: Path | str) -> Iterator[Database]:
    """Open a database for a while."""
    engine = engine_for(database)
    engine.open()
    yield Database(engine)
    engine.close()


def add(tx: Transaction, numbers: Iterable[int]) -> None:
    """Add posts: one of three a draft, the first 25 archived."""
    for number in numbers:
        status = "archived" if number <= 25 else "published" if number % 3 else "draft"
        tags = [f"tag{number % 10}", f"topic{number % 100}", "drafts" if status == "draft" else "all"]
        meets = " odd" if number % 100_000 == 0 else " hundredth" if number % 1000 == 100 else ""
        content = f"{CONTENT} {'odd' if number % 2 else 'even'}{meets}"
        fields = {"title": f"Post {number}", "slug": f"post-{number}", "content": content, "status": status}
        posts.add(tx, fields | {"tags": tags})


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Run a server for a while."""
    server.start()
    try:
        yield server
    finally:
        server.stop()
