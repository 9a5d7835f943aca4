"""Find the files that the configuration of a site leaves out. Names and patterns of all programs count."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pathspec import GitIgnoreSpec

from blogapi.wings.markdown.programs import SCRIPTS, files
from blogapi.wings.markdown.public import Inherited
from blogapi.wings.transfer.folder import DataError, read_data, read_text
from blogapi.wings.transfer.sites import CONFIG_FILES, files_in, folders_up_to, mappings, roots_of

# Names in configurations for patterns of files that a program leaves out, in lower case
EXCLUDING = {
    *("exclude", "ignorefiles", "excludefiles", "ignored_content"),  # Jekyll, Hugo, its mounts, Zola
    *("exclude_docs", "draft_docs", "ignorepatterns", "userignorefilters"),  # MkDocs, Quartz, Obsidian
    *("article_excludes", "ignore_files", "ignores.add"),  # Pelican, Eleventy
    *("contentexclude", "contenthide"),  # Flowershow
}
REGEXES = {"ignorefiles", "userignorefilters"}  # their patterns may be regular expressions
IGNORE_FILE = ".eleventyignore"
TEMPLATES = "templates.json"  # in Obsidian
EXCLUDING_FILES = (
    *CONFIG_FILES,
    *files("quartz.config", SCRIPTS),
    "config.json",
    IGNORE_FILE,
    f".obsidian/{TEMPLATES}",
)
OPTS_IN = "ExplicitPublish"  # In Quartz, only `publish: true` publishes then.
OPTED_IN = re.compile(rf"^[^/\n]*\b{OPTS_IN}\(", re.MULTILINE)
IN_SCRIPT = re.compile(
    rf"\b({'|'.join(map(re.escape, sorted(EXCLUDING)))})[\"']?\s*[:=(]\s*(\[[^\]]*\]|\"[^\"\n]*\"|'[^'\n]*')",
    re.IGNORECASE,
)
QUOTED = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'")

MAX_PATTERNS, MAX_LENGTH = 200, 500  # in one list, and of each; a list with more counts as matching every file
MAX_STEPS = 10**8  # in the worst case; a match that may take more counts as one
REPEATED = re.compile(r"\*+|[+?{|]")  # Each multiplies the steps by the length of the path.
NESTED = re.compile(r"\)\s*[*+{]")  # may take exponential time, with white space in a verbose one


class Patterns:
    """Patterns of files, relative to any folder of a site; with `are_regexes`, they may be regular expressions."""

    def __init__(self, lines: list[str], are_regexes: bool = False):
        self.is_endless = len(lines) > MAX_PATTERNS or any(map(_is_endless, lines))
        usable = [] if self.is_endless else lines
        self.regexes = [*filter(None, map(_regex, usable))] if are_regexes else []
        self.spec = GitIgnoreSpec.from_lines(filter(_is_for_git, usable))
        self.power = 1 + max((len(REPEATED.findall(line)) for line in usable), default=0)

    def matches(self, path: str) -> bool:
        """Return whether the patterns match a path or the end of one, or might take too long to tell."""
        if self.is_endless or len(path) ** self.power > MAX_STEPS:
            return True
        parts = path.split("/")
        ends = ("/".join(parts[index:]) for index in range(len(parts)))
        return any(map(self.spec.match_file, ends)) or any(regex.search(path) for regex in self.regexes)


class Exclusion(NamedTuple):
    """The patterns of files that a configuration leaves out."""

    name: str  # in the configuration
    patterns: Patterns


def excluded_by(path: Path, bound: Path) -> Iterator[Inherited]:
    """Yield the configurations that leave out a file, or hide it unless it says otherwise."""
    for folder in folders_up_to(bound, path.parent):
        for file, exclusions in _exclusions(folder, roots_of(bound)):
            for name, patterns in exclusions:
                if name == OPTS_IN:
                    yield Inherited(file.name, {"publish": "false"})
                elif patterns.matches(path.relative_to(folder).as_posix()):
                    yield Inherited(file.name, why=f"{name} in {file.name}")


@cache
def _exclusions(folder: Path, roots: tuple[str, ...]) -> tuple[tuple[Path, list[Exclusion]], ...]:
    """Return what each configuration in a folder leaves out; one that cannot be read is reported elsewhere."""
    exclusions = []
    for file in files_in(folder, EXCLUDING_FILES):
        try:
            lists = [*_lists(file, roots)]
        except DataError:
            continue
        exclusions.append((file, [Exclusion(name, Patterns(lines, name in REGEXES)) for name, lines in lists]))
    return tuple(exclusions)


def _lists(file: Path, roots: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield the lists of patterns in a configuration, each with its name. Raises DataError."""
    if file.name == IGNORE_FILE:
        yield file.name, read_text(file, roots).splitlines()
    elif file.name == TEMPLATES:
        yield "folder", [*_texts(read_data(file, roots).get("folder"))]
    elif file.suffix in (".json", ".toml", ".yaml", ".yml"):
        yield from _lists_in(read_data(file, roots))
    else:
        text = read_text(file, roots)
        if OPTED_IN.search(text):
            yield OPTS_IN, []
        for match in IN_SCRIPT.finditer(text):
            yield match[1].lower(), [one or other for one, other in QUOTED.findall(match[2])]


def _lists_in(value: Any) -> Iterator[tuple[str, list[str]]]:
    for mapping in mappings(value):
        for name, inner in mapping.items():
            if str(name).lower() in EXCLUDING:
                yield str(name).lower(), [line for text in _texts(inner) for line in text.splitlines()]
            else:
                yield from _lists_in(inner)


def _texts(value: Any) -> Iterable[str]:
    return filter(lambda text: isinstance(text, str), value if isinstance(value, list) else [value])


def _is_endless(pattern: str) -> bool:
    return len(pattern) > MAX_LENGTH or NESTED.search(pattern) is not None


def _regex(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern[1:-1] if re.fullmatch("/.+/", pattern) else pattern)
    except (re.error, OverflowError, RecursionError):
        return None


def _is_for_git(pattern: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([pattern])
    except (re.error, ValueError):
        return False
    return True
