"""Measure the service beside the floor, a bare Flask view returning the same bytes on gunicorn gthread, 4 threads.

Server on one core, wrk on another, in turn; the median of some runs. With --posts, each list is also compared with the
same one at 1,000 posts. The key is checked, the limit is on but raised, every commit is durable.
"""

import argparse
import http.client
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from peewee import fn

from blogapi.files.markdown import render
from blogapi.storage import keys, posts, webhooks
from blogapi.storage.database import Database, engine_for
from blogapi.storage.models import POST_EVENTS, Post
from blogapi.storage.transaction import Transaction
from tests.postgresql import PostgresqlServer

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
SERVER_CORE, CLIENT_CORE = {0}, {1}
ALL_CORES = SERVER_CORE | CLIENT_CORE
CONTENT = ("Lorem ipsum **dolor** sit amet, consetetur sadipscing.\n" * 20)[:1000]
POST = "/v1/posts/1"
LISTS = {
    "list": "/v1/posts?limit=20",
    "list by status": "/v1/posts?limit=20&status=published",
    "list by rare status": "/v1/posts?limit=20&status=archived",
    "list by tag": "/v1/posts?limit=20&tag=tag3",
    "list by tag and status": "/v1/posts?limit=20&tag=tag3&status=published",
    "list by tag and status without a match": "/v1/posts?limit=20&tag=drafts&status=published",
    "list 50,000 posts deep": "/v1/posts?limit=20&before={deep}",
    "by date": "/v1/posts?limit=20&sort=published_at",
    "by date, of a status": "/v1/posts?limit=20&sort=published_at&status=published",
    "by date, of a rare status": "/v1/posts?limit=20&sort=published_at&status=archived",
    "by date, of a tag": "/v1/posts?limit=20&sort=published_at&tag=tag3",
    "by date, of a tag and a status": "/v1/posts?limit=20&sort=published_at&tag=tag3&status=published",
    "some fields": "/v1/posts?limit=20&fields=id,title,slug,published_at",
    "tags": "/v1/tags?limit=20",
    "tags by status": "/v1/tags?limit=20&status=published",
}
SEARCHES = {  # and what a list of 20 is to be, in shares
    "a word in half of the posts": ("/v1/posts?limit=20&q=even", "0.33"),
    "a word in few": ("/v1/posts?limit=20&q=hundredth", "0.33"),
    "a word in none": ("/v1/posts?limit=20&q=none", "0.33"),
    "the beginning of a word, one letter": ("/v1/posts?limit=20&q=l*", "0.33"),
    "two common words": ("/v1/posts?limit=20&q=lorem+ipsum", ""),
    "two common words that meet rarely": ("/v1/posts?limit=20&q=even+odd", ""),
    "a word and a rare status": ("/v1/posts?limit=20&q=lorem&status=archived", ""),
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


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

    def list(self, connections: int, seconds: int, path: str = LISTS["list"]) -> Result:
        return self.load(connections, seconds, "list", path.format(deep=max(self.posts - 50_000, 71)))

    def list_unchanged(self, connections: int, seconds: int) -> Result:
        """Let wrk ask for the list with the entity tag that it has."""
        return self.load(connections, seconds, "list", LISTS["list"], self.etag(LISTS["list"]))

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


def medians(runs: int, *measurements: Callable[[], Result]) -> list[Result]:
    """Take measurements in turn, some times; return the median of each."""
    rounds = [[measure() for measure in measurements] for _ in range(runs)]
    return [Result(*map(statistics.median, zip(*results, strict=True))) for results in zip(*rounds, strict=True)]


def line(name: str, result: Result, share: str = "", least: str = "", aim: str = "") -> None:
    print(
        f"{name:<42} {result.rate:8.0f} {result.p50:8.2f} {result.p99:8.2f}  {share:>7} {least:>8} {aim:>6}", flush=True
    )


def beside_the_floor(blog: Blog, folder: Path, runs: int, seconds: int) -> None:
    """Print how the service compares with the floor."""
    (folder / "page.json").write_bytes(blog.get(LISTS["list"]))
    (folder / "post.json").write_bytes(blog.get(POST))
    command = [BIN / "gunicorn", "-c", "/dev/null", "-k", "gthread", "--threads", "4", "-b", "127.0.0.1:{port}"]
    with running(Server(folder, [*command, "bench.floor:app"], blog.key, BODIES=str(folder))) as floor:
        for connections, targets in (
            (1, {"list": ("0.80", "1.00"), "create": ("0.26", "0.33"), "delete": ("0.28", "0.38")}),
            (16, {"list": ("0.75", "0.95"), "create": ("0.35", "0.50"), "delete": ("0.40", "0.65")}),
        ):
            base, listed, created, deleted = medians(
                runs,
                lambda c=connections: floor.load(c, seconds, "list", LISTS["list"]),
                lambda c=connections: blog.list(c, seconds),
                lambda c=connections: blog.create(c, seconds),
                lambda c=connections: blog.delete(c, seconds),
            )
            line(f"floor, list, {connections} connections", base)
            for name, result in (("list", listed), ("create", created), ("delete", deleted)):
                line(f"{name}, {connections} connections", result, f"{result.rate / base.rate:.2f}", *targets[name])
            base, result = medians(
                runs,
                lambda c=connections: floor.load(c, seconds, "list", POST),
                lambda c=connections: blog.list(c, seconds, POST),
            )
            line(f"floor, one post, {connections} connections", base)
            line(f"get one post, {connections} connections", result, f"{result.rate / base.rate:.2f}", "0.80")


def beside_the_list(blog: Blog, runs: int, seconds: int) -> None:
    """Print how lists in another order, with some fields, and those that the client has compare with the plain one."""
    print("\nshares of the list, one connection")
    paths = {name: path for name, path in LISTS.items() if "sort=" in path or "fields=" in path}
    base, *results = medians(
        runs,
        lambda: blog.list(1, seconds),
        *(lambda p=path: blog.list(1, seconds, p) for path in paths.values()),
        lambda: blog.list_unchanged(1, seconds),
    )
    for name, result in zip([*paths, "unchanged: 304"], results, strict=True):
        line(name, result, f"{result.rate / base.rate:.2f}", "0.60")


def searches(blog: Blog, runs: int, seconds: int) -> None:
    """Print how searches compare with a list."""
    print(f"\nsearches of {blog.posts:,} posts, shares of a list, one connection")
    for name, (path, least) in SEARCHES.items():
        base, result = medians(runs, lambda: blog.list(1, seconds), lambda p=path: blog.list(1, seconds, p))
        line(name, result, f"{result.rate / base.rate:.2f}", least)


def as_files(blog: Blog, runs: int, seconds: int) -> None:
    """Print how posts as files compare: a creation with one from JSON, a PUT that changes nothing with a GET."""
    print("\nposts as files, shares of a creation from JSON and of a GET")
    for connections in (1, 16):
        base, result = medians(
            runs,
            lambda c=connections: blog.create(c, seconds),
            lambda c=connections: blog.create(c, seconds, "new.md"),
        )
        line(f"create from Markdown, {connections} connections", result, f"{result.rate / base.rate:.2f}", "0.85")
        base, *results = medians(
            runs,
            lambda c=connections: blog.list(c, seconds, POST),
            lambda c=connections: blog.put_unchanged(c, seconds, "same.json"),
            lambda c=connections: blog.put_unchanged(c, seconds, "same.md"),
        )
        for kind, result in zip(("JSON", "Markdown"), results, strict=True):
            name = f"put {kind} unchanged, {connections} connections"
            line(name, result, f"{result.rate / base.rate:.2f}", "0.80")
    made, unchanged = blog.import_twice(10_000)
    print(f"import of 10,000 files, a second: {made:.0f} made, {unchanged:.0f} unchanged  (above 500)")


@contextmanager
def receiver() -> Iterator[str]:
    """Run a receiver of webhooks on the client's core for a while; give its URL."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, HERE / "receiver.py", str(port)], preexec_fn=lambda: os.sched_setaffinity(0, CLIENT_CORE)
    )
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()


def beside_none(blog: Blog, runs: int, seconds: int) -> None:
    """Print how creation with ten webhooks compares with that without; each post is two events for each of them."""
    print("\nshares of the same without webhooks")
    creations = [lambda c=connections: blog.create(c, seconds) for connections in (1, 16)]
    without = medians(runs, *creations)
    with receiver() as url:
        with opened(blog.database) as database:
            for _ in range(10):
                database.write(webhooks.add, url, list(POST_EVENTS))
        results = medians(runs, *creations)
    for connections, base, result in zip((1, 16), without, results, strict=True):
        name = f"create with ten webhooks, {connections} connections"
        line(name, result, f"{result.rate / base.rate:.2f}", "0.50")


def beside_a_thousand(large: Blog, small: Blog, runs: int, seconds: int) -> None:
    """Print how the service compares with itself at 1,000 posts."""
    print(f"\nshares of the same at {small.posts:,} posts, one connection")
    for name, path in LISTS.items():
        base, result = medians(runs, lambda p=path: small.list(1, seconds, p), lambda p=path: large.list(1, seconds, p))
        line(name, result, f"{result.rate / base.rate:.2f}", "0.85", "0.95")
    for name in ("create", "delete"):
        base, result = medians(
            runs, lambda n=name: getattr(small, n)(1, seconds), lambda n=name: getattr(large, n)(1, seconds)
        )
        line(name, result, f"{result.rate / base.rate:.2f}", "0.85", "0.95")


def beside_sqlite(folder: Path, runs: int, seconds: int) -> None:
    """Print how PostgreSQL compares with SQLite, on all cores, which the server, the service and wrk share."""
    print("\nPostgreSQL, shares of the same with SQLite")
    with ExitStack() as stack:
        server = stack.enter_context(PostgresqlServer())
        for name in ("sqlite", "one", "two"):
            (folder / name).mkdir()
        one = Blog(folder / "sqlite", 1000)
        blogs = {"one worker": Blog(folder / "one", 1000, server.create("one"))}
        blogs["two workers"] = Blog(folder / "two", 1000, server.create("two"), WEB_CONCURRENCY="2")
        for blog in (one, *blogs.values()):
            blog.cores = ALL_CORES
            stack.enter_context(running(blog))
        operations = {
            "list": (lambda blog, c: blog.list(c, seconds), "0.40", "0.45"),
            "get one post": (lambda blog, c: blog.list(c, seconds, POST), "", ""),
            "create": (lambda blog, c: blog.create(c, seconds), "0.30", "0.22"),
            "delete": (lambda blog, c: blog.delete(c, seconds), "", ""),
        }
        for name, (operation, *targets) in operations.items():
            for connections, target in zip((1, 16), targets, strict=True):
                measured = [partial(operation, blog, connections) for blog in (one, *blogs.values())]
                base, *results = medians(runs, *measured)
                line(f"SQLite, {name}, {connections} connections", base)
                for kind, result in zip(blogs, results, strict=True):
                    line(f"{name}, {kind}, {connections} connections", result, f"{result.rate / base.rate:.2f}", target)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=1000)
    parser.add_argument("--engine", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit(
            "bench: wrk is missing; Debian: apt install wrk; macOS: brew install wrk; or https://github.com/wg/wrk"
        )
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="blogapi-bench-")))
        print(f"{'':<42} {'req/s':>8} {'p50 ms':>8} {'p99 ms':>8}  {'share':>7} {'at least':>8} {'aim':>6}")
        if options.engine == "postgresql":
            beside_sqlite(folder, options.runs, options.seconds)
            return
        blog = Blog(folder, options.posts)
        starts = []
        for _ in range(5):
            starts.append(blog.start())
            blog.stop()
        stack.enter_context(running(blog))
        beside_the_floor(blog, folder, options.runs, options.seconds)
        print(f"\ncold start to the first answer {statistics.median(starts):6.2f} s   (below 1, aim 0.4)")
        print(f"memory after the load (PSS)    {blog.memory():6.1f} MB  (below 100, aim 75)")
        if options.posts > 1000:
            beside_a_thousand(blog, stack.enter_context(running(Blog(folder, 1000))), options.runs, options.seconds)
        beside_the_list(blog, options.runs, options.seconds)
        searches(blog, options.runs, options.seconds)
        as_files(blog, options.runs, options.seconds)
        beside_none(blog, options.runs, options.seconds)


if __name__ == "__main__":
    main()
