"""Collect the service's metrics for Prometheus."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from importlib.metadata import version
from itertools import accumulate

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.registry import Collector

from blogapi.api.service import BUCKETS, Service
from blogapi.search.index import indexed_percent
from blogapi.storage.models import Backup
from blogapi.webhooks import storage as webhooks
from blogapi.wings.images.storage import total_bytes

SIZES = {
    "database_size": "Size of the database on disk, in bytes.",
    "wal": "Size of the -wal file, in bytes.",
    "disk_free": "Free space on the disk of the database, in bytes.",
}


class Metrics(Collector):
    """Collects the request counts, and figures from the database."""

    def __init__(self, service: Service):
        self._database = service.database
        self._rate_limit = service.config.rate_limit
        self._requests = service.requests
        self._build = InfoMetricFamily("blogapi_build", "The running version.", {"version": version("blogapi")})
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Return all metrics in Prometheus's text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily("blogapi_requests", "Requests.", labels=["operation", "status"])
        for (endpoint, status), counts in self._requests.counts.items():
            requests.add_metric([label(endpoint), status], sum(counts))
        durations = HistogramMetricFamily(
            "blogapi_request_duration_seconds", "Time to handle a request once its turn has come.", labels=["operation"]
        )
        bounds = [*map(str, BUCKETS), "+Inf"]
        for endpoint, seconds in self._requests.seconds.items():
            by_status = [count for (name, _), count in self._requests.counts.items() if name == endpoint]
            totals = accumulate(map(sum, zip(*by_status, strict=True)))
            durations.add_metric([label(endpoint)], list(zip(bounds, totals, strict=True)), seconds)
        limit = GaugeMetricFamily("blogapi_rate_limit", "Requests per minute for each key.", self._rate_limit)
        return [self._build, requests, durations, limit, self._deliveries(), *self._of_database()]

    def _of_database(self) -> Iterable[Metric]:
        for name, size in self._database.engine.sizes().items():
            yield GaugeMetricFamily(f"blogapi_{name}_bytes", SIZES[name], size)
        yield GaugeMetricFamily("blogapi_images_bytes", "Size of all images, in bytes.", total_bytes(self._database))
        percent = indexed_percent(self._database)
        indexed = 1 if percent is None else percent / 100
        yield GaugeMetricFamily("blogapi_indexed_ratio", "Share of the posts in the search index.", indexed)
        if backup := self._database.row(Backup.select(Backup.made_at)):
            seconds = datetime.fromisoformat(backup[0]).timestamp()
            name = "blogapi_last_backup_timestamp_seconds"
            yield GaugeMetricFamily(name, "When `blogapi backup` last succeeded.", seconds)

    def _deliveries(self) -> Metric:
        states: Counter[str] = Counter(dict.fromkeys(("pending", "delivered", "failed"), 0))
        for webhook in webhooks.listing(self._database):
            states.update(webhooks.count_by_state(self._database, webhook.id))
            self._database.engine.loop.pause()  # Up to 50 webhooks take up to 5 ms each.
        gauge = GaugeMetricFamily("blogapi_deliveries", "Deliveries in each state.", labels=["state"])
        for state, number in states.items():
            gauge.add_metric([state], number)
        return gauge


def label(endpoint: str | None) -> str:
    """Return the name of an operation in the API description, or WING.VIEW for the owner's page and Micropub."""
    blueprint, _, view = (endpoint or "none").removeprefix("api.").rpartition(".")
    wing = blueprint.partition(".")[0]
    return f"{wing}.{view}" if wing in ("owner", "micropub") else view
