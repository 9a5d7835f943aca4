"""The metrics of the service for Prometheus."""

import time
from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from blogapi.api.service import BUCKETS, Service
from blogapi.wings.images.storage import total_bytes
from blogapi.wings.webhooks import storage as webhooks


class Metrics(Collector):
    """The metrics: counts of requests, and values from the database."""

    def __init__(self, service: Service):
        self._database = service.database
        self._rate_limit = service.config.rate_limit
        self._requests = service.requests
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        """Return the metrics for the library to write."""
        requests = CounterMetricFamily("blogapi_requests", "Requests.", labels=["operation", "status"])
        for (endpoint, status), counts in self._requests.counts.items():
            requests.add_metric([label(endpoint), status], sum(counts))
        durations = HistogramMetricFamily(
            "blogapi_request_duration_seconds", "Time from a request's turn to its answer.", labels=["operation"]
        )
        bounds = [*map(str, BUCKETS), "+Inf"]
        for endpoint, seconds in self._requests.seconds.items():
            by_status = [each for (name, _), each in self._requests.counts.items() if name == endpoint]
            totals = accumulate(map(sum, zip(*by_status, strict=True)))
            durations.add_metric([label(endpoint)], list(zip(bounds, totals, strict=True)), seconds)
        limit = GaugeMetricFamily("blogapi_rate_limit", "Requests per minute for each key.", self._rate_limit)
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
    """Return the name of an operation as in its description; for other views, possibly with the name of the wing."""
    blueprint, _, view = (endpoint or "none").removeprefix("api.").rpartition(".")
    wing = blueprint.partition(".")[0]
    return f"{wing}.{view}" if wing in ("owner", "micropub") else view
