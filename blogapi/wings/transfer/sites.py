"""The sites that posts come from: what their configurations say."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import tzinfo
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from blogapi.config import zone_named
from blogapi.wings.markdown.programs import ANY, PROGRAMS, Program
from blogapi.wings.transfer.folder import DataError, exists, read_data, read_text, real_folders
from blogapi.wings.transfer.names import pattern_of

# Folders often given in place of their site, whose configuration is then in a folder above
SITE_PARTS = {"_posts", "_drafts", "content", "source", "src"}
ASSIGNED = re.compile(r"^(\w+)[ \t]*=(?!=)[ \t]*(?:([\"'])(.*?)\2|(\{[^{}]{0,3000}\}|.*))", re.MULTILINE)
CONFIG_FILES = tuple(dict.fromkeys(config for program in PROGRAMS for config in program.config_files))
PARTS_BELOW_PARTS = {"posts", "post", "blog", "drafts"}  # counts only below one of SITE_PARTS


class Site(NamedTuple):
    """The site of some posts: what its configuration says about them, and the program that builds it."""

    program: Program
    zone: tzinfo  # time zone for times without an offset
    recognized: str = ""  # the program, and what showed it
    pattern: str = ""  # pattern of the posts' addresses
    folder: Path | None = None  # where its configuration is
    config: Path | None = None
    values: Mapping[str, Any] | None = None  # the configuration; None if it cannot be read
    is_zone_unknown: bool = False
    unread: str = ""  # a configuration that cannot be read, and why
    languages: frozenset[str] = frozenset()  # codes that can end the names of files, in lower case

    def without_language(self, path: Path) -> Path:
        """Return the path of a file in the default language: `x.md` for `x.fr.md`."""
        name, _, language = path.stem.rpartition(".")
        return path.with_name(name + path.suffix) if name and language.lower() in self.languages else path


def bound_of(top: Path) -> Path:
    """Return the highest folder whose configuration counts, the given one or its site; nothing above is read."""
    top = Path(os.path.abspath(top))
    while top.name in SITE_PARTS or (top.name in PARTS_BELOW_PARTS and top.parent.name in SITE_PARTS):
        top = top.parent
    return top


@cache
def roots_of(bound: Path) -> tuple[str, ...]:
    """Return the folder in which files may be opened, as `open_below` takes it."""
    return real_folders([bound])


@cache
def site_of(folder: Path, bound: Path, zone: tzinfo) -> Site:
    """Return the site whose configuration is in a folder or above, up to `bound`. Times are in `zone` by default."""
    unread, notes = "", None  # notes: a folder of notes, which may be in a site
    for parent in folders_up_to(bound, folder):
        for config in files_in(parent, CONFIG_FILES):
            try:
                values = _read(config, roots_of(bound))
            except DataError as error:
                unread = unread or f"{config} ({error})"
                program = next((program for program in reversed(PROGRAMS) if config.name in program.config_files), ANY)
                if config.stem in ("_config", "hugo"):  # No other program has such a file.
                    return Site(program, zone, "", program.permalink_pattern, parent, config, None, True, unread)
                continue
            below = config.relative_to(parent).as_posix()
            for program in (program for program in PROGRAMS if below in program.config_files):
                names = () if below in program.own_config_files else program.config_names
                if not names or values.keys() & names:
                    site = _site(program, parent, config, values, zone)._replace(unread=unread)
                    if program.publishes_by_date:
                        return site
                    notes = notes or site
        if parent == parent.parent:
            break
    if notes:
        return notes
    path = f"/{folder.relative_to(bound.parent).as_posix()}/"
    for program in PROGRAMS:
        if name := next((name for name in program.post_folders if f"/{name}/" in path), ""):
            return Site(
                program, zone, f"{program.name}, by the folder {name}", program.permalink_pattern, unread=unread
            )
    return Site(ANY, zone, unread=unread)


def _site(program: Program, folder: Path, config: Path, values: Mapping[str, Any], zone: tzinfo) -> Site:
    name = values.get("timezone")
    own = zone_named(name) if isinstance(name, str) else None
    pattern = pattern_of(program, values)
    recognized = f"{program.name}, by {config}"
    is_unknown, languages = bool(name) and not own, frozenset(_languages(program, folder, values))
    return Site(program, own or zone, recognized, pattern, folder, config, values, is_unknown, languages=languages)


def _languages(program: Program, folder: Path, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the languages that a configuration or a file beside it names, and English, the default."""
    if program.languages:
        settings = ["en", *(values.get(name) for name in program.languages)]
        for file in files_in(folder, program.language_files):
            with suppress(DataError):
                settings.append(_read(file, roots_of(folder)))
        for setting in settings:
            names = [setting] if isinstance(setting, str) else setting if isinstance(setting, dict) else ()
            yield from (name.lower() for name in names if name)


def _read(config: Path, roots: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the values in a configuration; for a script, those assigned at the top, as text. Raises DataError."""
    if config.suffix in (".json", ".toml", ".yaml", ".yml"):
        return read_data(config, roots)
    return {match[1].lower(): match[3] or match[4] or "" for match in ASSIGNED.finditer(read_text(config, roots))}


def folders_up_to(bound: Path, folder: Path) -> Iterator[Path]:
    """Yield a folder and those above it, the last of which is `bound`."""
    return takewhile(lambda parent: parent != bound.parent, (folder, *folder.parents))


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return the mappings in a list, or a single one."""
    return [element for element in (value if isinstance(value, list) else [value]) if isinstance(element, dict)]


@cache
def names_in(folder: Path) -> frozenset[str] | None:
    """Return the names of what is in a folder, or None if that cannot be read."""
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return None


def files_in(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield those of the files that are in a folder; all of them if it cannot be read."""
    entries = names_in(folder)
    for name in names if entries is None else (name for name in names if name.partition("/")[0] in entries):
        if exists(path := folder / name):
            yield path
