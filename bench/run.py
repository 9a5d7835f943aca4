"""Measure the service beside the floor, a bare Flask view returning the same bytes on gunicorn gthread, 4 threads.

Server on one core, wrk on another, in turn; the median of some runs. With --posts, each list is also compared with the
same one at 1,000 posts. The key is checked, the limit is on but raised, every commit is durable.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench.servers import (
    ALL_CORES,
    BIN,
    CLIENT_CORE,
    HERE,
    LIST,
    POST,
    Blog,
    Result,
    Server,
    TwoServices,
    opened,
    running,
)
from blogapi.storage import webhooks
from blogapi.storage.models import POST_EVENTS
from tests.postgresql import PostgresqlServer
from tests.service import free_port

LISTS = {
    "list": LIST,
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
    (folder / "page.json").write_bytes(blog.get(LIST))
    (folder / "post.json").write_bytes(blog.get(POST))
    command = [BIN / "gunicorn", "-c", "/dev/null", "-k", "gthread", "--threads", "4", "-b", "127.0.0.1:{port}"]
    with running(Server(folder, [*command, "bench.floor:app"], blog.key, BODIES=str(folder))) as floor:
        for connections, targets in (
            (1, {"list": ("0.80", "1.00"), "create": ("0.26", "0.33"), "delete": ("0.28", "0.38")}),
            (16, {"list": ("0.75", "0.95"), "create": ("0.35", "0.50"), "delete": ("0.40", "0.65")}),
        ):
            base, listed, created, deleted = medians(
                runs,
                lambda c=connections: floor.load(c, seconds, "list", LIST),
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
        for name in ("sqlite", "one", "two", "services"):
            (folder / name).mkdir()
        one = Blog(folder / "sqlite", 1000)
        blogs = {"one worker": Blog(folder / "one", 1000, server.create("one"))}
        blogs["two workers"] = Blog(folder / "two", 1000, server.create("two"), WEB_CONCURRENCY="2")
        blogs["two services"] = TwoServices(folder / "services", 1000, server.create("services"))
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
