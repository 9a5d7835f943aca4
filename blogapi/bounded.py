"""Limit JSON, TOML and YAML before parsing, because parsers recurse and values take memory.

The checks for JSON only call functions written in C, so checking 4 MiB takes milliseconds.
"""

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import yaml

MAX_DIGITS = 100  # maximum number of digits in a number in JSON, because parsing an integer takes quadratic time
MAX_NAME_PARTS = 16  # maximum number of parts in a dotted name in TOML, because tomllib takes quadratic time
NOT_STRUCTURE = bytes({*range(256)} - {*b'[{]},"'})

# Strings and comments in TOML. For linear time, the pattern ends an unclosed string where its line or the file ends.
TOML_TEXT = r'"""(?:[^\\]|\\.)*?(?:"{3,5}|\Z)|\'{3}.*?(?:\'{3,5}|\Z)|"(?:[^"\\\n]|\\.)*"?|\'[^\'\n]*\'?|\#[^\n]*'
TOML_STRING = re.compile(TOML_TEXT, re.DOTALL)
LONG_NAME = re.compile(rf'(?<![\w"-])(?:[\w"-]++[ \t]*+\.[ \t]*+){{{MAX_NAME_PARTS}}}')
# libyaml is ten times as fast as the parser in Python, but some PyYAML wheels do not include it.
YamlLoader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class OutOfBounds(ValueError):
    """A string exceeds a limit, which the message states. `line` is its line number, from 1."""

    def __init__(self, bound: str, line: int = 1):
        super().__init__(bound)
        self.line = line


def check_json(data: bytes, max_values: int, max_depth: int) -> None:
    """Check that JSON is small enough. Commas and opening brackets count as values. Raises OutOfBounds."""
    openings = data.count(b"[") + data.count(b"{")
    if openings > max_depth or (len(data) > max_values and openings + data.count(b",") > max_values):
        # Count again without strings.
        structure = data.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, NOT_STRUCTURE)
        _check(structure.count(b'"') // 4, max_values)  # A name and its value have at most four quotes.
        _check_structure(b"".join(structure.split(b'"')[::2]), max_values, max_depth)


def check_number(text: str) -> str:
    """Return a number unchanged. Raises OutOfBounds if it has too many digits."""
    if len(text) > MAX_DIGITS:
        raise OutOfBounds(f"must have numbers of at most {MAX_DIGITS} digits")
    return text


def check_toml(text: str, max_values: int, max_depth: int) -> None:
    """Check that TOML is small enough. Lines, commas and opening brackets count as values. Raises OutOfBounds."""
    structure = TOML_STRING.sub('""', text)
    if name := LONG_NAME.search(structure):
        line = structure.count("\n", 0, name.start()) + 1
        raise OutOfBounds(f"must have names of at most {MAX_NAME_PARTS} parts", line)
    _check_structure(structure.replace("\n", ",").encode(), max_values, max_depth)


def _check_structure(structure: bytes, max_values: int, max_depth: int) -> None:
    """Check the number and depth of the values in JSON or TOML, given without its strings. Raises OutOfBounds."""
    brackets = structure.translate(None, NOT_STRUCTURE + b',"')[: 2 * max_values]  # any more would exceed the limit
    depth = max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0)
    _check(sum(map(structure.count, (b"[", b"{", b","))), max_values, depth, max_depth)


def yaml_events(text: str, max_events: int, max_depth: int) -> Iterator[yaml.Event]:
    """Yield the parser's events for YAML. Raises OutOfBounds or yaml.YAMLError."""
    depth = 0
    for number, event in enumerate(yaml.parse(text, YamlLoader), 1):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if number > max_events or depth > max_depth:
            mark: Any = event.start_mark
            _check(number, max_events, depth, max_depth, text.count("\n", 0, mark.index) + 1)
        yield event


def _check(values: int, max_values: int, depth: int = 0, max_depth: int = 0, line: int = 1) -> None:
    if depth > max_depth:
        raise OutOfBounds(f"must not be nested more than {max_depth} levels deep", line)
    if values > max_values:
        raise OutOfBounds(f"must have at most {max_values:,} values")
