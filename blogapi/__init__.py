"""blogapi: a JSON HTTP API for managing the posts of a blog."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Import `create_app` when it is first used (PEP 562): the command line does without Flask."""
    if name == "create_app":
        return import_module("blogapi.factory").create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
