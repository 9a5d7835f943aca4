"""The servers to measure: the service, and anything else that wrk can query."""

import http.client
import json
import math
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
from typing import Any, NamedTuple

from blogapi.engines import engine_for
from blogapi.posts import storage as posts
from blogapi.storage.database import Database
from blogapi.storage.engine import Transaction
from blogapi.storage.models import Author
from tests.service import free_port

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parent
BIN = Path(sys.executable).parent
SQLITE_BIN = CHECKOUT / ".venv-bench/bin"  # without psycopg
SERVER_CORE, CLIENT_CORE = {0}, {1}
ALL_CORES = SERVER_CORE | CLIENT_CORE
CONTENT = ("Lorem ipsum **dolor** sit amet, consetetur sadipscing.\n" * 20)[:1000]
START_SECONDS = 60  # time limit for the first response
IDLE_SECONDS = 0.5  # a server that uses less than a fifth of this time is idle
POST = "/v1/posts/1"
LIST = "/v1/posts?limit=20"
NEW = {"title": "A new post, NUMBER", "content": CONTENT, "tags": ["tag3", "new", "all"], "status": "published"}
NEW_FILE = f"---\ntitle: A new post, NUMBER\nstatus: published\ntags: [tag3, new, all]\n---\n\n{CONTENT}"


class Result(NamedTuple):
    """A measurement by wrk: requests per second, milliseconds, and the server's processor time per request.

    Deferred work counts as if the server had done it at once.
    """

    rate: float
    p50: float
    p99: float
    cpu_us: float


class Server:
    """A server on one core."""

    seconds = 3  # length of a measurement
    new_post = json.dumps(NEW)
    first_new = 0  # id of the first post made by the last `create`

    def __init__(self, folder: Path, command: list[str | Path], key: str, **environ: str):
        self.port = free_port()
        self.cores = SERVER_CORE
        self.folder = folder
        self.key = key
        self.log = (folder / f"{self.port}.log").open("w")
        self.environ = os.environ | {"PORT": str(self.port), "BLOGAPI_RATE_LIMIT": "999999999"} | environ
        self.command = [str(part).format(port=self.port) for part in command]
        self.checkout = CHECKOUT

    def start(self) -> float:
        """Start the server, and return the seconds until its first response."""
        begun = time.perf_counter()
        self.process = subprocess.Popen(
            self.command,
            cwd=self.checkout,
            env=self.environ,
            stdout=self.log,
            stderr=self.log,
            preexec_fn=lambda: os.sched_setaffinity(0, self.cores),
        )
        while True:
            try:
                self.request("GET", "/v1/posts?limit=1")
                return time.perf_counter() - begun
            except OSError:
                if self.process.poll() is not None or time.perf_counter() > begun + START_SECONDS:
                    sys.exit(
                        f"bench: a server did not start: {Path(self.log.name).read_text(encoding='utf-8')[-2000:]}"
                    )
                time.sleep(0.005)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def fill(self) -> None:
        """Add the posts that must exist before anything is measured."""

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[bytes, Any]:
        """Send a request; return the body and the headers of the response."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            headers |= {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
            connection.request(method, path, body and json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.read(), answer.headers

    def processes(self) -> list[str]:
        children = (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="utf-8").split()
        )
        return [str(self.process.pid), *children]

    def cpu_seconds(self) -> float:
        """Return the processor time that the server has used."""
        stats = [
            Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            for process in self.processes()
        ]
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Return the memory of all processes in MB (PSS)."""
        rollups = [Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8") for process in self.processes()]
        return sum(int(re.search(r"^Pss: +(\d+)", rollup, re.MULTILINE)[1]) for rollup in rollups) / 1024

    def load(self, connections: int, *arguments: object, seconds: int = 0) -> Result:
        """Let wrk send the requests defined in wrk.lua."""
        wrk = ["wrk", "-t1", f"-c{connections}", f"-d{seconds or self.seconds}", "-s", HERE / "wrk.lua"]
        before = self.cpu_seconds()
        ended = subprocess.run(
            [*wrk, f"http://127.0.0.1:{self.port}", "--", *map(str, arguments)],
            env=os.environ | {"KEY": self.key},
            capture_output=True,
            text=True,
            check=True,
            preexec_fn=lambda: os.sched_setaffinity(0, CLIENT_CORE),
        )
        rate, p50, p99, requests, failed = map(float, re.search(r"RESULT (.+)", ended.stdout)[1].split())
        if failed:
            sys.exit(f"bench: {failed:.0f} requests failed: {arguments}; see {self.log.name}")
        at_end = self.cpu_seconds()
        self.wait_until_idle()
        after = self.cpu_seconds()
        return Result(requests / (requests / rate + after - at_end), p50, p99, (after - before) / requests * 1e6)

    def wait_until_idle(self) -> None:
        """Wait until the server does nothing but its periodic checks."""
        used = -math.inf
        while self.cpu_seconds() - used > IDLE_SECONDS / 5:
            used = self.cpu_seconds()
            time.sleep(IDLE_SECONDS)

    def list(self, connections: int, path: str = LIST) -> Result:
        return self.load(connections, "list", path)

    def one_post(self, connections: int) -> Result:
        return self.list(connections, POST)

    def create(self, connections: int) -> Result:
        """Create posts. `delete` deletes them."""
        self.first_new = self.newest() + 1
        return self.send_new(connections, "/v1/posts", "new.json", self.new_post)

    def send_new(self, connections: int, path: str, name: str, template: str, first: int = 0) -> Result:
        (self.folder / name).write_text(template)
        return self.load(connections, "create", path, self.folder / name, first or time.time_ns() // 1000)

    def delete(self, connections: int) -> Result:
        """Delete posts of the last `create`, for a third of its time, because deleting can be three times as fast."""
        return self.load(connections, "delete", "/v1/posts", self.first_new, seconds=max(1, self.seconds // 3))

    def newest(self) -> int:
        """Return the id of the newest post, 0 if none exists."""
        newest = json.loads(self.request("GET", "/v1/posts?limit=1")[0])
        return int(newest[0]["id"]) if newest else 0


class Blog(Server):
    """A checkout's service with a given number of posts, by default in a file."""

    def __init__(self, folder: Path, count: int, database: str = "", checkout: Path = CHECKOUT, **settings: str):
        folder.mkdir(exist_ok=True)
        self.database = database or str(folder / f"{count}.db")
        self.posts = count
        settings |= {"BLOGAPI_DATABASE": self.database, "BLOGAPI_WEBHOOK_PRIVATE": "true", "PYTHONPATH": str(checkout)}
        super().__init__(folder, [(BIN if database else SQLITE_BIN) / "gunicorn"], "", **settings)
        self.checkout = checkout
        self.key = re.search(r"blog_[\w-]{43}", self.blogapi("init"))[0]

    def blogapi(self, *arguments: str | Path) -> str:
        return self.python("from blogapi.cli import main; main()", *arguments)

    def python(self, code: str, *arguments: str | Path) -> str:
        """Run code of the checkout on the client's core."""
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=self.checkout,
            env=self.environ,
            check=True,
            capture_output=True,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, CLIENT_CORE),
        ).stdout

    def fill(self) -> None:
        """Add posts through the API or, if there are many, through the storage of the checkout."""
        missing = range(self.newest() + 1, self.posts + 1)
        if len(missing) > 10_000:
            self.stop()
            code = f"from bench.servers import store; import sys; store(sys.argv[1], {missing})"
            self.python(code, self.database)
            self.start()
            while self.request("GET", f"{LIST}&q=none")[1]["Retry-After"]:  # until all posts are in the search index
                time.sleep(1)
        else:
            with ThreadPoolExecutor(16) as pool:
                list(pool.map(lambda number: self.request("POST", "/v1/posts", fields_of(number)), missing))
        for number in range(1, 26):
            self.request("PATCH", f"/v1/posts/{number}", {"status": "archived"})

    def list_unchanged(self, connections: int) -> Result:
        """Request the list with its current entity tag."""
        return self.load(connections, "list", LIST, self.request("GET", LIST)[1]["ETag"])

    def create_from_markdown(self, connections: int) -> Result:
        return self.send_new(connections, "/v1/posts", "new.md", NEW_FILE)

    def put_unchanged(self, connections: int, name: str) -> Result:
        """PUT the first post unchanged, as JSON or as Markdown."""
        text, _ = self.request("GET", POST, Accept="text/markdown" if name.endswith(".md") else "application/json")
        slug = json.loads(self.request("GET", POST)[0])["slug"]
        if name.endswith(".json"):
            fields = json.loads(text)
            text = json.dumps({key: fields[key] for key in fields if key not in READ_ONLY}).encode()
        (self.folder / name).write_bytes(text)
        return self.load(connections, "put", f"/v1/posts/by-slug/{slug}", self.folder / name)

    def import_twice(self, count: int) -> list[float]:
        """Import a folder of 3 kB files twice; return the files per second of both imports."""
        folder = self.folder / "imported"
        folder.mkdir()
        for number in range(count):
            (folder / f"{number}.md").write_text(NEW_FILE.replace("NUMBER", str(number)) + CONTENT * 2)
        rates = []
        for _ in range(2):
            begun = time.perf_counter()
            self.blogapi("import", folder)
            rates.append(count / (time.perf_counter() - begun))
        return rates


READ_ONLY = ("id", "created_at", "updated_at")


class TwoServices(Blog):
    """Two services on one database; each gets half of the sixteen connections."""

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

    def load(self, connections: int, *arguments: object, seconds: int = 0) -> Result:
        if connections == 1 or arguments[0] == "delete":  # Both would delete the same posts.
            return super().load(connections, *arguments, seconds=seconds)
        with ThreadPoolExecutor(1) as pool:
            others = pool.submit(self.other.load, connections // 2, *arguments, seconds=seconds)
            own = super().load(connections // 2, *arguments, seconds=seconds)
            other = others.result()
        return Result(
            own.rate + other.rate, (own.p50 + other.p50) / 2, max(own.p99, other.p99), (own.cpu_us + other.cpu_us) / 2
        )


def fields_of(number: int) -> dict[str, Any]:
    """Return the fields of a post of about 1 kB with three tags. One in three is a draft."""
    status = "published" if number % 3 else "draft"
    tags = [f"tag{number % 10}", f"topic{number % 100}", "drafts" if status == "draft" else "all"]
    meets = " odd" if number % 100_000 == 0 else " hundredth" if number % 1000 == 100 else ""
    content = f"{CONTENT} {'odd' if number % 2 else 'even'}{meets}"
    return {"title": f"Post {number}", "slug": f"post-{number}", "content": content, "status": status, "tags": tags}


def store(location: str, numbers: range) -> None:
    """Add posts to a database that no server uses."""
    engine = engine_for(location if "://" in location else Path(location))
    engine.open()
    for start in range(numbers.start, numbers.stop, 10_000):
        Database(engine).write(add, range(start, min(start + 10_000, numbers.stop)))
    engine.close()


def add(tx: Transaction, numbers: Iterable[int]) -> None:
    for number in numbers:
        posts.add(tx, fields_of(number), Author("bench"))


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """Run a server, with its posts, during the block."""
    server.start()
    try:
        server.fill()
        yield server
    finally:
        server.stop()
