"""The objects of an application, and its metrics."""

import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from blogapi.api.limiter import FixedWindow, Uploads
from blogapi.config import Config
from blogapi.images.storage import total_bytes
from blogapi.storage import engine_for
from blogapi.storage.database import Database
from blogapi.storage.loop import BLOCKING, Loop
from blogapi.webhooks import storage as webhooks

EXTENSION = "blogapi"  # the key of a Service in `app.extensions`
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


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

    def count(self, endpoint: str | None, status: str, seconds: float) -> None:
        """Count a request of a view, or of none."""
        self._counts[endpoint, status][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[endpoint] += seconds

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics that the library writes."""
        requests = CounterMetricFamily("blogapi_requests", "Requests.", labels=["operation", "status"])
        for (endpoint, status), counts in self._counts.items():
            requests.add_metric([label(endpoint), status], sum(counts))
        durations = HistogramMetricFamily(
            "blogapi_request_duration_seconds", "Time from a request's turn to its answer.", labels=["operation"]
        )
        bounds = [*map(str, BUCKETS), "+Inf"]
        for endpoint, seconds in self._seconds.items():
            counts = [each for (name, _), each in self._counts.items() if name == endpoint]
            totals = accumulate(map(sum, zip(*counts, strict=True)))
            durations.add_metric([label(endpoint)], list(zip(bounds, totals, strict=True)), seconds)
        limit = GaugeMetricFamily("blogapi_rate_limit", "Requests a minute for each key.", self._rate_limit)
        size = self._database.engine.size()
        bytes_on_disk = GaugeMetricFamily("blogapi_database_size_bytes", "Bytes of the database on disk.", size)
        images_bytes = GaugeMetricFamily("blogapi_images_bytes", "Bytes of all images.", total_bytes(self._database))
        return [requests, durations, limit, self._deliveries(), bytes_on_disk, images_bytes]

    def _deliveries(self) -> Metric:
        states: Counter[str] = Counter(dict.fromkeys(("pending", "delivered", "failed"), 0))
        for webhook in webhooks.listing(self._database):
            states.update(webhooks.count_by_state(self._database, webhook.id))
            time.sleep(0)  # Let other requests run: each of up to 50 webhooks takes up to 5 ms.
        gauge = GaugeMetricFamily("blogapi_deliveries", "Deliveries that are kept.", labels=["state"])
        for state, number in states.items():
            gauge.add_metric([state], number)
        return gauge


def label(endpoint: str | None) -> str:
    """Return the name of an operation, as its description has it."""
    return endpoint.removeprefix("api.") if endpoint else "none"


@dataclass(frozen=True)
class Service:
    """The parts of the service. An application has one in its extensions; a test can put another one there."""

    config: Config
    clock: Callable[[], float]
    database: Database
    limiter: FixedWindow
    metrics: Metrics
    loop: Loop
    uploads: Uploads

    @classmethod
    def open(
        cls,
        config: Config,
        clock: Callable[[], float] = time.time,
        loop: Loop = BLOCKING,
        database_class: type[Database] = Database,
    ) -> Self:
        """Open the database, which is set up if it is empty; raise Unavailable if it cannot be used."""
        engine = engine_for(config.database, config.database_connections, loop)
        engine.open()
        database = database_class(engine, clock)
        limiter = FixedWindow(config.rate_limit, clock=clock)
        return cls(config, clock, database, limiter, Metrics(database, config.rate_limit), loop, Uploads())
