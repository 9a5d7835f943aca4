"""Check and merge a post's `params`: values for a site's templates, which the service never interprets."""

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

from blogapi.documents import MAX_INTEGER, MAX_PARAM_NAME
from blogapi.text import CONTROL, CONTROL_OR_BREAK, FORBIDDEN, VISIBLE

MAX_DEPTH = 8
MAX_VALUES = 500
MAX_BYTES = 32 * 1024  # maximum size as JSON


class ParamsError(ValueError):
    """Params are invalid. `place` is the invalid place, such as `.author.name`; `reason` says what it must be."""

    def __init__(self, place: str, reason: str):
        super().__init__(f"{place[1:]}: {reason}" if place else reason)
        self.place = place
        self.reason = reason


class MergePatch(dict):
    """A merge patch of params (RFC 7396)."""


def check_params(values: dict[str, Any], *, allow_null: bool = False) -> None:
    """Raise ParamsError unless these are valid params. With `allow_null`, a value may be None."""
    max_values = 2 * MAX_VALUES if allow_null else MAX_VALUES  # A patch may remove all values and add as many new ones.
    for count, (value, place, depth, is_nullable) in enumerate(_walk(values, "", 0, allow_null)):
        if count > max_values:
            raise ParamsError("", f"must have at most {max_values:,} values")
        if value and depth >= MAX_DEPTH and isinstance(value, dict | list):
            raise ParamsError(place, f"must not be nested more than {MAX_DEPTH} levels deep")
        if isinstance(value, dict):
            _check_names(value, place)
        elif not isinstance(value, list) and not (value is None and is_nullable):
            _check_scalar(value, place)
    if len(json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()) > MAX_BYTES:
        raise ParamsError("", f"must have at most {MAX_BYTES // 1024} KiB as JSON")


def _walk(value: Any, place: str, depth: int, is_nullable: bool) -> Iterator[tuple[Any, str, int, bool]]:
    """Yield a value and all values in it, with their places, their depths, and whether they may be None."""
    yield value, place, depth, is_nullable
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _walk(part, f"{place}.{name}", depth + 1, is_nullable)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _walk(part, f"{place}[{index}]", depth + 1, False)


def is_name(text: str) -> bool:
    return len(text) <= MAX_PARAM_NAME and not CONTROL_OR_BREAK.search(text) and VISIBLE.search(text) is not None


def _check_names(names: Iterable[str], place: str) -> None:
    for name in names:
        if not is_name(name):
            bounds = f"a name must be one line of 1 to {MAX_PARAM_NAME} characters, at least one of them visible"
            raise ParamsError(place, bounds)


def _check_scalar(value: Any, place: str) -> None:
    if value is None:
        raise ParamsError(place, "must not be null")
    if isinstance(value, str) and CONTROL.search(value):
        raise ParamsError(place, f"must not contain {FORBIDDEN}")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ParamsError(place, "must be within ±2^53, or a string")
    if isinstance(value, float) and not math.isfinite(value):
        raise ParamsError(place, "must be a finite number")


def merge(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are the same JSON, including the order of names. Unlike in Python, true is not 1."""
    return json.dumps(one) == json.dumps(other)
