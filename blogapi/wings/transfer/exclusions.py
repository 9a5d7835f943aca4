"""Find the files that a site's configuration leaves out. Every program's settings apply to every site."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from math import comb
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

from pathspec import GitIgnoreSpec

from blogapi.markdown.programs import ANY, NO_MATCH
from blogapi.markdown.public import Inherited
from blogapi.wings.transfer.folder import DataError, read_data, read_text
from blogapi.wings.transfer.sites import CONFIG_FILES, files_in, folders_up_to, mappings, roots_of

# Settings that list patterns of files to leave out, in lower case
EXCLUDING = {
    *("exclude", "ignorefiles", "excludefiles", "ignored_content"),  # Jekyll, Hugo, its mounts, Zola
    *("exclude_docs", "draft_docs", "exclude_patterns"),  # MkDocs, Sphinx with ABlog
    *("ignorepatterns", "userignorefilters"),  # Quartz, Obsidian
    *("article_excludes", "ignore_files", "ignores.add", "ignores"),  # Pelican, Eleventy, Nuxt
    *("ignore", "srcexclude", "excludedpaths"),  # Hexo, Gatsby, Lume and Middleman, VitePress, Statiq
    *("contentexclude", "contenthide"),  # Flowershow
}
# Settings with regular expressions: all patterns in Hugo, and patterns between slashes in Obsidian
REGEXES = {"ignorefiles": re.compile(".*", re.DOTALL), "userignorefilters": re.compile("/.+/")}
SLASHES = re.compile("^/(.+)/$")
IGNORED = "a line"
IGNORE_FILES = (".eleventyignore", ".gitignore")  # A post that git ignores was not published from git.
TEMPLATES = "templates.json"  # contains the path of Obsidian's template folder
EXCLUDING_FILES = (*CONFIG_FILES, *ANY.language_files, "config.json", *IGNORE_FILES, f".obsidian/{TEMPLATES}")
OPTS_IN = "ExplicitPublish"  # With this, Quartz publishes only posts with `publish: true`.
OPTED_IN = re.compile(rf"^[^/\n]*\b{OPTS_IN}\(", re.MULTILINE)
IN_SCRIPT = re.compile(
    rf"\b({'|'.join(map(re.escape, sorted(EXCLUDING, reverse=True)))})[\"']?\s{{0,9}}[:=]?\s{{0,9}}"
    r"(\[[^\]]{0,3000}\]|\([^()]{0,3000}\)|\"[^\"\n]*\"|'[^'\n]*')",
    re.IGNORECASE,
)
QUOTED = re.compile(r"([\"'`])([^\"'`\n]*)\1")
RENDERED = "render"  # Quarto's list of files; "!" excludes a file there, and in the `files` of Hugo's mounts

MAX_PATTERNS, MAX_LENGTH = 1000, 500  # maximum number of patterns in a list, and maximum length of a pattern
MAX_STEPS = 10**8  # maximum number of steps that a match may take in the worst case
STARS = re.compile(r"\*+")
REPEATED = re.compile(r"\*+|[+?{|]")  # Each operator multiplies the steps of a match by the path length.
# Patterns that are too long, may take exponential time, or contain POSIX classes, which Python reads differently
UNUSABLE = re.compile(rf"\)\s*[*+{{]|\[:|\A.{{{MAX_LENGTH + 1}}}", re.DOTALL)


class Patterns:
    """Patterns of file paths, which match in any folder of a site or, if `are_rooted`, only in its top folder.

    Patterns that `regexes` matches are also tried as regular expressions. Every path matches if a pattern may take too
    long, or may mean something else in Python than in its program.
    """

    def __init__(self, lines: list[str], regexes: re.Pattern[str] = NO_MATCH, are_rooted: bool = False):
        self.are_rooted = are_rooted
        self.match_all = len(lines) > MAX_PATTERNS or any(map(UNUSABLE.search, lines))
        lines = [] if self.match_all else lines
        expressions = [*filter(regexes.fullmatch, lines)]
        self.stars = max((len(STARS.findall(line)) for line in lines), default=0)
        self.repeated = max((len(REPEATED.findall(line)) for line in expressions), default=0)
        self.regexes: list[re.Pattern[str]] = []
        with catch_warnings():
            simplefilter("ignore", FutureWarning)  # about nested sets, which Python may one day read differently
            self.spec = GitIgnoreSpec.from_lines(filter(_is_git_pattern, lines))
            try:
                self.regexes = [re.compile(SLASHES.sub(r"\1", line)) for line in expressions]
            except (re.error, OverflowError, RecursionError):
                self.match_all = True

    def matches(self, path: str) -> bool:
        """Return whether the patterns match a path or the end of the path."""
        parts, length = path.split("/"), len(path)
        steps = max(len(parts) * comb(length + self.stars, self.stars), length ** (1 + self.repeated))
        if self.match_all or steps > MAX_STEPS:
            return True
        ends = ("/".join(parts[index:]) for index in range(1 if self.are_rooted else len(parts)))
        # In Hugo, a path begins with a slash.
        return any(map(self.spec.match_file, ends)) or any(
            regex.search(path) or regex.search(f"/{path}") for regex in self.regexes
        )


def excluded_by(path: Path, bound: Path) -> Iterator[Inherited]:
    """Yield the settings that exclude a file, or that hide it unless its front matter says otherwise."""
    for folder in folders_up_to(bound, path.parent):
        for file, name, patterns in _exclusions(folder, roots_of(bound)):
            if name == OPTS_IN:
                yield Inherited(file.name, {"publish": "false"})
            elif patterns.matches(path.relative_to(folder).as_posix()):
                yield Inherited(file.name, why=f"{name} in {file.name}")


@cache
def _exclusions(folder: Path, roots: tuple[str, ...]) -> tuple[tuple[Path, str, Patterns], ...]:
    """Return the patterns in each configuration of a folder, with the names of their settings."""
    exclusions = []
    for file in files_in(folder, EXCLUDING_FILES):
        with suppress(DataError):  # reported elsewhere
            for name, lines in [*_lists(file, roots)]:
                patterns = Patterns(lines, REGEXES.get(name, NO_MATCH), are_rooted=name in (IGNORED, RENDERED))
                exclusions.append((file, name, patterns))
    return tuple(exclusions)


def _lists(file: Path, roots: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield the lists of patterns in a configuration, each with the name of its setting. Raises DataError."""
    if file.name in IGNORE_FILES:
        lines = read_text(file, roots).splitlines()
        yield IGNORED, [line for line in lines if line.strip() and not line.startswith("#")]
    elif file.name == TEMPLATES:
        yield "folder", [*_texts(read_data(file, roots).get("folder"))]
    elif file.suffix in (".json", ".toml", ".yaml", ".yml"):
        yield from _lists_in(read_data(file, roots))
    else:
        text = read_text(file, roots)
        if OPTED_IN.search(text):
            yield OPTS_IN, []
        lists: defaultdict[str, list[str]] = defaultdict(list)
        for match in IN_SCRIPT.finditer(text):
            lists[match[1].lower()] += [quoted for _, quoted in QUOTED.findall(match[2])]
        yield from lists.items()


def _lists_in(value: Any) -> Iterator[tuple[str, list[str]]]:
    for mapping in mappings(value):
        for name, inner in mapping.items():
            if name in (RENDERED, "files"):
                yield name, [line[1:].strip() for line in _texts(inner) if line.startswith("!")]
            elif isinstance(inner, dict) and str(inner.get("disabled")).lower() == "true":  # a language in Hugo
                yield f"{name}.disabled", [f"{name}/", f"*.{name}.*"]
            elif str(name).lower() in EXCLUDING:
                yield str(name).lower(), [line for text in _texts(inner) for line in text.splitlines()]
            else:
                yield from _lists_in(inner)


def _texts(value: Any) -> Iterable[str]:
    return filter(lambda text: isinstance(text, str), value if isinstance(value, list) else [value])


def _is_git_pattern(pattern: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([pattern])
    except (re.error, ValueError):
        return False
    return True
