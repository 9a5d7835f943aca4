"""The objects of an application, the rate limit and the metrics."""

import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, Self

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from blogapi.config import Config
from blogapi.storage import PLAIN, Loop, engine_for, webhooks
from blogapi.storage.engine import Database
from blogapi.storage.keys import WINDOW_SECONDS, Hits

EXTENSION = "blogapi"  # the key of a Service in `app.extensions`
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


class Quota(NamedTuple):
    """What is left to a key after a request."""

    limit: int
    remaining: int
    reset: int  # Unix time, whole seconds, at which the window ends
    retry_after: int  # whole seconds until then, at least 1
    exceeded: bool

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [
            ("X-RateLimit-Limit", str(self.limit)),
            ("X-RateLimit-Remaining", str(self.remaining)),
            ("X-RateLimit-Reset", str(self.reset)),
        ]


class FixedWindow:
    """Counts up to `limit` hits of each key in windows of `seconds`, aligned to the Unix epoch."""

    def __init__(self, limit: int, seconds: int = WINDOW_SECONDS, clock: Callable[[], float] = time.time):
        self.limit = limit
        self.seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._window = 0
        self._hits: dict[Any, int] = {}

    def hit(self, key: Any, counted: Hits | None = None) -> Quota:
        """Count one request of `key`, unless the database has `counted` it already, for several processes."""
        hits, window, now = counted or self._count(key, 1)
        reset = (window + 1) * self.seconds
        return Quota(self.limit, max(0, self.limit - hits), reset, max(1, reset - now), hits > self.limit)

    def peek(self, key: Any = None, counted: Hits | None = None) -> Quota:
        """Return the quota of `key` without counting; without a key, the full limit."""
        return self.hit(key, counted or self._count(key, 0))

    def _count(self, key: Any, count: int) -> tuple[int, int, int]:
        now = int(self._clock())
        window = now // self.seconds
        with self._lock:
            if window == self._window - 1:  # The clock was set back: a window does not begin twice.
                window = self._window
            elif window != self._window:
                self._window, self._hits = window, {}
            hits = self._hits.get(key, 0) + count
            if count:
                self._hits[key] = hits
        return hits, window, now


class Metrics(Collector):
    """Counts requests for Prometheus in plain numbers: its own counters would take 3 % of a small request."""

    def __init__(self, database: Database, rate_limit: int):
        self._database = database
        self._rate_limit = rate_limit
        self._counts: dict[tuple[str | None, str], list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: dict[str | None, float] = defaultdict(float)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def count(self, operation: str | None, status: str, seconds: float) -> None:
        """Count a request by the endpoint of its view, or None."""
        self._counts[operation, status][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[operation] += seconds

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics that the library writes."""
        requests = CounterMetricFamily("blogapi_requests", "Requests.", labels=["operation", "status"])
        for (operation, status), counts in self._counts.items():
            requests.add_metric([label(operation), status], sum(counts))
        durations = HistogramMetricFamily(
            "blogapi_request_duration_seconds", "Time from a request's turn to its answer.", labels=["operation"]
        )
        bounds = [*map(str, BUCKETS), "+Inf"]
        for operation, seconds in self._seconds.items():
            counts = [each for (name, _), each in self._counts.items() if name == operation]
            totals = accumulate(map(sum, zip(*counts, strict=True)))
            durations.add_metric([label(operation)], list(zip(bounds, totals, strict=True)), seconds)
        limit = GaugeMetricFamily("blogapi_rate_limit", "Requests a minute for each key.", self._rate_limit)
        size = self._database.engine.size()
        bytes_on_disk = GaugeMetricFamily("blogapi_database_size_bytes", "Bytes of the database on disk.", size)
        return [requests, durations, limit, self._deliveries(), bytes_on_disk]

    def _deliveries(self) -> Metric:
        states: Counter[str] = Counter(dict.fromkeys(("pending", "delivered", "failed"), 0))
        for webhook in webhooks.listing(self._database):
            states.update(webhooks.count_by_state(self._database, webhook.id))
            time.sleep(0)  # Let other requests run: each of up to 50 webhooks takes up to 5 ms.
        gauge = GaugeMetricFamily("blogapi_deliveries", "Deliveries that are kept.", labels=["state"])
        for state, number in states.items():
            gauge.add_metric([state], number)
        return gauge


def label(operation: str | None) -> str:
    """Return the name of an operation, as its description has it."""
    return operation.removeprefix("api.") if operation else "none"


@dataclass(frozen=True)
class Service:
    """The parts of the service. An application has one in its extensions; a test can put another one there."""

    config: Config
    clock: Callable[[], float]
    database: Database
    limiter: FixedWindow
    metrics: Metrics
    loop: Loop

    @classmethod
    def open(cls, config: Config, clock: Callable[[], float] = time.time, loop: Loop = PLAIN) -> Self:
        """Open the database, which is set up if it is empty; raise Unavailable if it cannot be used."""
        engine = engine_for(config.database, config.database_connections, loop)
        engine.open()
        database = Database(engine, clock)
        limiter = FixedWindow(config.rate_limit, clock=clock)
        return cls(config, clock, database, limiter, Metrics(database, config.rate_limit), loop)
