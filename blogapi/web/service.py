"""The service: the objects that an application consists of."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from flask import current_app

from blogapi.config import Config
from blogapi.loop import PLAIN, Loop
from blogapi.storage import engine_for
from blogapi.storage.engine import Database
from blogapi.web.limiter import FixedWindow
from blogapi.web.metrics import Metrics

EXTENSION = "blogapi"  # its key in `app.extensions`


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


def service() -> Service:
    """Return the service of the current application."""
    return current_app.extensions[EXTENSION]


def database() -> Database:
    """Return the database of the current application."""
    return service().database
