"""Compare the service with the floor, a bare Flask view that returns the same bytes on gunicorn gthread, 4 threads.

The server has one core, and wrk another. The systems take turns. Each figure is the median of several runs. The service
checks the key and counts requests against a raised limit, and every commit is durable.
"""

import argparse
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.pocketbase import PROGRAM, PocketBase
from bench.servers import (
    ALL_CORES,
    CLIENT_CORE,
    CONTENT,
    HERE,
    LIST,
    POST,
    SERVER_CORE,
    SQLITE_BIN,
    Blog,
    Result,
    Server,
    TwoServices,
    running,
)
from tests.postgresql.programs import PostgresqlServer
from tests.service import free_port

LISTS = {
    "list": LIST,
    "list by status": f"{LIST}&status=published",
    "list by rare status": f"{LIST}&status=archived",
    "list by tag": f"{LIST}&tag=tag3",
    "list by tag and status": f"{LIST}&tag=tag3&status=published",
    "list by tag and status without a match": f"{LIST}&tag=drafts&status=published",
    "list 50,000 posts deep": f"{LIST}&before={{deep}}",
    "by date": f"{LIST}&sort=published_at",
    "by date, with a status": f"{LIST}&sort=published_at&status=published",
    "by date, with a rare status": f"{LIST}&sort=published_at&status=archived",
    "by date, with a tag": f"{LIST}&sort=published_at&tag=tag3",
    "by date, with a tag and a status": f"{LIST}&sort=published_at&tag=tag3&status=published",
    "some fields": f"{LIST}&fields=id,title,slug,published_at",
    "tags": "/v1/tags?limit=20",
    "tags by status": "/v1/tags?limit=20&status=published",
}
SEARCHES = {  # with the lowest acceptable fraction of a list's speed
    "a word in half of the posts": ("even", "0.33"),
    "a word in few": ("hundredth", "0.33"),
    "a word in none": ("none", "0.33"),
    "the first letter of a word": ("l*", "0.33"),
    "two common words": ("lorem+ipsum", ""),
    "two common words that meet rarely": ("even+odd", ""),
    "a word and a rare status": ("lorem&status=archived", ""),
}
TO_REACH = {  # target fractions of the floor's list or single post, with 1 and 16 connections
    "list": ("1.00", "0.95"),
    "one post": ("1.15", "1.20"),
    "create": ("0.24", "0.45"),
    "delete": ("0.25", "0.40"),
}
OPERATIONS = {"list": "list", "one post": "one_post", "create": "create", "delete": "delete"}  # and their methods


class Row(NamedTuple):
    """A measurement, and the table row to which it is compared."""

    name: str
    measure: Callable[[], Result]
    of: int | None = None
    least: str = ""


def table(title: str, rows: list[Row], runs: int) -> None:
    """Take the measurements in turn, and print the median of each."""
    rounds = [[row.measure() for row in rows] for _ in range(runs)]
    results = [Result(*map(statistics.median, zip(*each, strict=True))) for each in zip(*rounds, strict=True)]
    print(f"\n{title:<44} {'req/s':>8} {'p50 ms':>7} {'p99 ms':>7} {'CPU µs':>7} {'share':>6} {'CPU':>5} at least")
    for row, result in zip(rows, results, strict=True):
        line = f"{row.name:<44} {result.rate:8.0f} {result.p50:7.2f} {result.p99:7.2f} {result.cpu_us:7.0f}"
        if row.of is not None:
            base = results[row.of]
            line += f" {result.rate / base.rate:6.2f} {result.cpu_us / base.cpu_us:5.2f} {row.least:>8}"
        print(line, flush=True)


def side_by_side(title: str, systems: dict[str, Server], operations: dict[str, str], runs: int) -> None:
    """Compare several systems with the first."""
    for connections in (1, 16):
        rows = []
        for operation, method in operations.items():
            first = len(rows)
            for name, system in systems.items():
                measure = partial(getattr(system, method), connections)
                rows.append(Row(f"{operation}, {name}", measure, first if len(rows) > first else None))
        table(f"{title}, {connections} at a time", rows, runs)


def ladder(blog: Blog, stack: ExitStack, runs: int) -> None:
    """Compare the service with the floor, and with the bare view and function on our worker."""
    folder = blog.folder
    (folder / "page.json").write_bytes(blog.request("GET", LIST)[0])
    (folder / "post.json").write_bytes(blog.request("GET", POST)[0])
    gthread = ["-c", "/dev/null", "-k", "gthread", "--threads", "4", "-b", "127.0.0.1:{port}", "bench.floor:app"]
    floor = stack.enter_context(running(Server(folder, [SQLITE_BIN / "gunicorn", *gthread], "", BODIES=str(folder))))
    bare = {}
    for kind in ("function", "flask"):
        environ = {"BODIES": str(folder), "BLOGAPI_DATABASE": str(folder / f"{kind}.db")}
        server = Server(folder, [SQLITE_BIN / "gunicorn", f"bench.our_worker:app('{kind}')"], "", **environ)
        bare[kind] = stack.enter_context(running(server))
    for index, connections in enumerate((1, 16)):
        rows = [
            Row("the floor: Flask on gthread, list", partial(floor.list, connections)),
            Row("WSGI function on our worker", partial(bare["function"].list, connections), 0),
            Row("Flask view on our worker", partial(bare["flask"].list, connections), 0),
            *(
                Row(name, partial(getattr(blog, OPERATIONS[name]), connections), 0, TO_REACH[name][index])
                for name in ("list", "create", "delete")
            ),
            Row("the floor, one post", partial(floor.one_post, connections)),
            Row("one post", partial(blog.one_post, connections), 6, TO_REACH["one post"][index]),
        ]
        table(f"the ladder, {connections} at a time", rows, runs)


def durable_inserts(folder: Path, seconds: int) -> None:
    """Print how many rows of a post's size SQLite alone inserts with durable commits: no service can be faster."""
    os.sched_setaffinity(0, SERVER_CORE)
    with closing(sqlite3.connect(folder / "bare.db", isolation_level=None)) as connection:
        connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; CREATE TABLE post (document TEXT)")
        for rows in (1, 16):
            commits, begun = 0, time.perf_counter()
            while time.perf_counter() - begun < seconds:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT INTO post VALUES (?)", [(CONTENT,)] * rows)
                connection.execute("COMMIT")
                commits += 1
            rate = commits * rows / (time.perf_counter() - begun)
            print(f"{f'a bare INSERT, durable, {rows} a commit':<44} {rate:8.0f}")
    os.sched_setaffinity(0, ALL_CORES)


def next_to_the_list(blog: Blog, runs: int) -> None:
    """Compare a plain list with searches, other orders, selected fields, and a list that the client already has."""
    paths = {name: (path, "0.60") for name, path in LISTS.items() if "sort=" in path or "fields=" in path}
    paths |= {name: (f"{LIST}&q={words}", least) for name, (words, least) in SEARCHES.items()}
    rows = [Row("list", partial(blog.list, 1)), Row("unchanged: 304", partial(blog.list_unchanged, 1), 0, "0.60")]
    rows += [Row(name, partial(blog.list, 1, path), 0, least) for name, (path, least) in paths.items()]
    table(f"{blog.posts:,} posts, 1 at a time", rows, runs)


def as_files(blog: Blog, runs: int) -> None:
    """Compare creating a post from Markdown with creating it from JSON, and a PUT that changes nothing with a GET."""
    for connections in (1, 16):
        rows = [
            Row("create from JSON", partial(blog.create, connections)),
            Row("create from Markdown", partial(blog.create_from_markdown, connections), 0, "0.80"),
            Row("one post", partial(blog.one_post, connections)),
            Row("PUT of the same JSON", partial(blog.put_unchanged, connections, "same.json"), 2, "0.60"),
            Row("PUT of the same Markdown", partial(blog.put_unchanged, connections, "same.md"), 2, "0.60"),
        ]
        table(f"posts as files, {connections} at a time", rows, runs)
    created, unchanged = blog.import_twice(10_000)
    print(f"import of 10,000 files, a second: {created:.0f} created, {unchanged:.0f} unchanged  (at least 500)")


@contextmanager
def receiver() -> Iterator[str]:
    """Run a webhook receiver on the client's core; yield its URL."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, HERE / "receiver.py", str(port)], preexec_fn=lambda: os.sched_setaffinity(0, CLIENT_CORE)
    )
    try:
        yield f"http://127.0.0.1:{port}/"
    finally:
        process.terminate()
        process.wait()


def next_to_pocketbase(blog: Blog, stack: ExitStack, runs: int) -> None:
    """Compare the service with PocketBase, by default and with commits that wait for the disk."""
    folder, systems = blog.folder, {"ours": blog}
    for name in ("PocketBase", "PocketBase, durable"):
        other = PocketBase(folder / name, 1000, durable=name.endswith("durable"))
        systems[name] = stack.enter_context(running(other))
    operations = {name: method for name, method in OPERATIONS.items() if name != "one post"}
    side_by_side("PocketBase", systems, operations, runs)


def with_webhooks(blog: Blog, stack: ExitStack, runs: int) -> None:
    """Compare creations with and without ten webhooks, each of which gets two events per post."""
    other = stack.enter_context(running(Blog(blog.folder / "webhooks", 1000)))
    url = stack.enter_context(receiver())
    for _ in range(10):
        other.request("POST", "/v1/webhooks", {"url": url, "events": ["post.created", "post.published"]})
    side_by_side("webhooks", {"none": blog, "ten": other}, {"create": "create"}, runs)


def growth(large: Blog, small: Blog, runs: int) -> None:
    """Compare the service with many posts to the same service with 1,000."""
    rows = []
    for name, path in LISTS.items():
        for blog in (small, large):
            measure = partial(blog.list, 1, path.format(deep=max(blog.posts - 50_000, 71)))
            rows.append(Row(f"{name}, {blog.posts:,}", measure, len(rows) - 1 if blog is large else None, "0.85"))
    table("growth, 1 at a time", rows, runs)
    writes = {name: name for name in ("create", "delete")}
    side_by_side("growth", {f"{small.posts:,}": small, f"{large.posts:,}": large}, writes, runs)


def postgresql(folder: Path, stack: ExitStack, runs: int) -> None:
    """Compare PostgreSQL with SQLite. The database, the service and wrk share all cores."""
    server = stack.enter_context(PostgresqlServer())
    blogs = {"SQLite": Blog(folder / "sqlite", 1000), "one worker": Blog(folder / "one", 1000, server.create("one"))}
    blogs["two workers"] = Blog(folder / "two", 1000, server.create("two"), WEB_CONCURRENCY="2")
    blogs["two services"] = TwoServices(folder / "services", 1000, server.create("services"))
    for blog in blogs.values():
        blog.cores = ALL_CORES
        stack.enter_context(running(blog))
    side_by_side("PostgreSQL", blogs, OPERATIONS, runs)


def everything(blog: Blog, stack: ExitStack, runs: int) -> None:
    """Measure the service of this checkout."""
    starts = []
    for _ in range(5):
        starts.append(blog.start())
        blog.stop()
    stack.enter_context(running(blog))
    ladder(blog, stack, runs)
    durable_inserts(blog.folder, Server.seconds)
    print(f"\ncold start to the first answer {statistics.median(starts):6.2f} s   (at most 0.50)")
    print(f"memory after the load (PSS)    {blog.memory():6.1f} MB  (at most 70)")
    if PROGRAM.exists():
        next_to_pocketbase(blog, stack, runs)
    if blog.posts > 1000:
        growth(blog, stack.enter_context(running(Blog(blog.folder, 1000))), runs)
    next_to_the_list(blog, runs)
    as_files(blog, runs)
    with_webhooks(blog, stack, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posts", type=int, default=1000)
    parser.add_argument("--engine", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--base", type=Path, help="another checkout, to compare this one with")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=3)
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("bench: wrk is missing; Debian: apt install wrk; macOS: brew install wrk")
    Server.seconds = options.seconds
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="blogapi-bench-")))
        if options.engine == "postgresql":
            postgresql(folder, stack, options.runs)
        elif options.base:
            base = Blog(folder / "base", options.posts, checkout=options.base.resolve())
            blogs = {"base": base, "this": Blog(folder / "this", options.posts)}
            for blog in blogs.values():
                stack.enter_context(running(blog))
            side_by_side(f"{options.posts:,} posts", blogs, OPERATIONS, options.runs)
        else:
            everything(Blog(folder / "blog", options.posts), stack, options.runs)


if __name__ == "__main__":
    main()
