"""Count the instructions of a request with callgrind; the counts are the same on every machine and under any load.

Needs valgrind. The figures are for the worker, which handles and logs all requests.
"""

import argparse
import http.client
import json
import re
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

from bench.servers import ALL_CORES, CHECKOUT, CONTENT, HERE, LIST, NEW, POST, SQLITE_BIN, Blog, running

WARM_UP, REQUESTS = 48, 320  # requests before counting starts, and while it runs
FIRST_POST = 1000  # number of posts before the run
Requests = Callable[[int], tuple[str, str, dict | None]]  # n -> method, path and body of the n-th request


class Counted(Blog):
    """A service whose worker runs under callgrind."""

    def __init__(self, folder: Path, checkout: Path):
        super().__init__(folder, FIRST_POST, checkout=checkout)
        self.environ["PYTHONPATH"] = f"{checkout}:{HERE}"
        self.cores = ALL_CORES
        self.output = folder / "callgrind.out"
        callgrind = ["valgrind", "-q", "--tool=callgrind", "--trace-children=yes", "--instr-atstart=no"]
        options = [f"--callgrind-out-file={self.output}.%p", "--log-file=/dev/null"]
        gunicorn = [str(SQLITE_BIN / "python"), str(SQLITE_BIN / "gunicorn"), "--timeout", "600", "slowed:app"]
        self.command = [*callgrind, *options, *gunicorn]

    def next_id(self) -> int:
        """Return the id of the next post."""
        return int(json.loads(self.request("POST", "/v1/posts", NEW)[0])["id"]) + 1

    def control(self, *arguments: str) -> None:
        """Send a command to the worker's callgrind."""
        worker = self.processes()[-1]
        subprocess.run(["callgrind_control", *arguments, worker], check=True, capture_output=True)

    def instructions(self, connections: int, requests: Requests) -> float:
        """Send requests over several connections; return how many thousand instructions each request takes.

        This includes work that the request leaves for the background.
        """
        numbers = count()
        self.send(connections, requests, [next(numbers) for _ in range(WARM_UP)])
        self.settle()
        self.control("--instr=on")
        self.control("--zero")
        self.send(connections, requests, [next(numbers) for _ in range(REQUESTS)])
        self.settle()
        self.control("--instr=off")
        self.control("--dump=counted")
        newest = max(self.folder.glob("callgrind.out.*"), key=lambda path: path.stat().st_mtime_ns)
        return int(re.search(r"^totals: (\d+)", newest.read_text(), re.MULTILINE)[1]) / REQUESTS / 1000

    def settle(self) -> None:
        """Let the service do its deferred work."""
        self.send(1, lambda number: ("GET", "/settle", None), [0])

    def send(self, connections: int, requests: Requests, numbers: list[int]) -> None:
        """Send the requests with these numbers, spread over the connections."""

        def share(start: int) -> None:
            with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)) as connection:
                for number in numbers[start::connections]:
                    method, path, body = requests(number)
                    content = json.dumps(body).encode() if body else b""
                    connection.putrequest(method, path, skip_accept_encoding=True)
                    connection.putheader("Authorization", f"Bearer {self.key}")
                    if body:
                        connection.putheader("Content-Type", "application/json")
                        connection.putheader("Content-Length", str(len(content)))
                    connection.endheaders(content)
                    answer = connection.getresponse()
                    answer.read()
                    assert answer.status < 300, answer.status

        with ThreadPoolExecutor(connections) as pool:
            list(pool.map(share, range(connections)))


def operations(first: int) -> dict[str, Requests]:
    """Return the operations. Deletions delete the created posts, starting with `first`."""
    changed = {"content": f"{CONTENT} changed"}
    return {
        "list of 20": lambda number: ("GET", LIST, None),
        "list of 20, no two alike": lambda number: ("GET", f"{LIST}&before={FIRST_POST - number}", None),
        "one post": lambda number: ("GET", POST, None),
        "one post, no two alike": lambda number: ("GET", f"/v1/posts/{number + 1}", None),
        "create": lambda number: ("POST", "/v1/posts", NEW | {"title": f"A new post, {first + number}"}),
        "change of the content": lambda number: ("PATCH", f"/v1/posts/{first + number}", changed),
        "delete": lambda number: ("DELETE", f"/v1/posts/{first + number}", None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", type=Path, help="another checkout, to compare this one with")
    options = parser.parse_args()
    checkouts = [options.base.resolve()] if options.base else []
    figures: dict[tuple[str, int], list[float]] = {}
    for checkout in [*checkouts, CHECKOUT]:
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="blogapi-bench-")))
            blog = stack.enter_context(running(Counted(folder, checkout)))
            for connections in (1, 16):
                for name, requests in operations(blog.next_id()).items():
                    figures.setdefault((name, connections), []).append(blog.instructions(connections, requests))
    print("thousands of instructions, with 1 connection and with 16" + (": base, this, share" if checkouts else ""))
    for name in operations(0):
        for connections in (1, 16):
            found = figures[name, connections]
            share = f"{found[1] / found[0]:6.2f}" if checkouts else ""
            print(f"{name:<28} {connections:>3} {' '.join(f'{each:9,.0f}' for each in found)} {share}", flush=True)


if __name__ == "__main__":
    main()
