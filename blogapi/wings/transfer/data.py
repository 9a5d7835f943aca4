"""Read YAML, TOML and JSON from files of other programs, with bounds on their size and depth."""

import json
import tomllib
from pathlib import Path
from typing import Any

import yaml

from blogapi.bounded import YamlLoader, check_json, check_toml, yaml_events
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.transfer.paths import open_below, reason_of

MAX_DATA_BYTES = 256 * 1024  # limit for a configuration or data file
MAX_DATA_DEPTH = 64  # limit for nested lists and mappings; deeper ones would exhaust the parsers, which are recursive
MAX_JSON_VALUES = 5_000_000  # limit for an export of Ghost


class DataError(MarkdownError, ValueError):
    """A file with data that cannot be read."""


def load_json(text: str) -> Any:
    """Return the value of JSON. Raises ValueError."""
    check_json(text.encode(errors="replace"), MAX_JSON_VALUES, MAX_DATA_DEPTH)
    return json.loads(text)


def load_toml(text: str) -> dict[str, Any]:
    """Return the values in TOML. Raises ValueError."""
    check_toml(text, MAX_DATA_BYTES, MAX_DATA_DEPTH)
    return tomllib.loads(text)


def load_yaml(text: str) -> Any:
    """Return the strings, lists and mappings in YAML, without types. Raises ValueError."""
    try:
        for _ in yaml_events(text, MAX_DATA_BYTES, MAX_DATA_DEPTH):
            pass
        return yaml.load(text, YamlLoader)
    except yaml.YAMLError:
        raise DataError("not valid YAML") from None


LOADERS = {".json": load_json, ".toml": load_toml}  # by file extension; any other is YAML


def read_text(path: Path, roots: tuple[str, ...]) -> str:
    """Return the text of a file below one of the folders `roots`. Raises DataError."""
    try:
        with open_below(path, roots) as file:
            data = file.read(MAX_DATA_BYTES + 1)
        if len(data) > MAX_DATA_BYTES:
            raise DataError(f"larger than {MAX_DATA_BYTES // 1024} KiB")
        return data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        raise DataError(reason_of(error)) from None


def read_data(path: Path, roots: tuple[str, ...]) -> dict[str, Any]:
    """Return the mapping in a file, its names in lower case; other values count as an empty one. Raises DataError."""
    text = read_text(path, roots)
    try:
        values = LOADERS.get(path.suffix, load_yaml)(text)
    except ValueError as error:
        raise DataError(str(error)) from None
    return {str(name).lower(): value for name, value in values.items()} if isinstance(values, dict) else {}
