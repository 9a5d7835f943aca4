"""blogapi: a JSON HTTP API for managing the posts of a blog."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Import `create_app` on first use (PEP 562), because the command line does not need Flask."""
    if name == "create_app":
        return import_module("blogapi.factory").create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
