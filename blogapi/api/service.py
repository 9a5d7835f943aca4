"""Hold the objects that an application uses, including its request counts."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from blogapi.api.limiter import FixedWindow
from blogapi.config import Config
from blogapi.engines import engine_for
from blogapi.storage.database import Database
from blogapi.storage.engine import Loop

EXTENSION = "blogapi"  # the key of a Service in `app.extensions`
SERVICE = "blogapi.service"  # the key of the Service in the WSGI environment
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


class RequestCounts:
    """Counts requests in plain integers, because the counters of the Prometheus library are much slower."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str | None, str], list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.seconds: dict[str | None, float] = defaultdict(float)

    def count(self, endpoint: str | None, status: str, seconds: float) -> None:
        self.counts[endpoint, status][bisect_left(BUCKETS, seconds)] += 1
        self.seconds[endpoint] += seconds


@dataclass
class Service:
    """The objects of an application, stored in its extensions."""

    config: Config
    clock: Callable[[], float]
    database: Database
    limiter: FixedWindow
    requests: RequestCounts
    loop: Loop
    due_second: int = 0  # when a request last looked for due posts

    @classmethod
    def open(cls, config: Config, clock: Callable[[], float], loop: Loop, database_class: type[Database]) -> Self:
        """Open the database; set it up or upgrade it if needed. Raises Unavailable if it cannot be used."""
        engine = engine_for(config.database, config.database_connections, loop)
        engine.open(config.create, upgrade=True)
        database = database_class(engine, clock, config.keep_days > 0)
        return cls(config, clock, database, FixedWindow(config.rate_limit, clock=clock), RequestCounts(), loop)
