"""Find the site of an imported folder: its program, its configuration, and the URLs of its posts."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from blogapi.config import zone_named
from blogapi.markdown.dates import datetime_of
from blogapi.markdown.files import MarkdownFile
from blogapi.markdown.programs import ANY, PROGRAMS, STYLES, Program
from blogapi.wings.transfer.folder import DataError, exists, read_data, read_text, real_folders
from blogapi.wings.transfer.names import NO_DATE

# Folders that people often import without the rest of the site. Its configuration is in a folder above them.
SITE_PARTS = {"_posts", "_drafts", "content", "source", "src"}
ASSIGNED = re.compile(r"^(\w+)[ \t]*=(?!=)[ \t]*(?:([\"'])(.*?)\2|(\{[^{}]{0,3000}\}|.*))", re.MULTILINE)
CONFIG_FILES = tuple(dict.fromkeys(config for program in PROGRAMS for config in program.config_files))
PARTS_BELOW_PARTS = {"posts", "post", "blog", "drafts"}  # the same, but only under one of SITE_PARTS


class Site(NamedTuple):
    """A site: the program that builds it, and the settings that concern its posts."""

    program: Program
    zone: tzinfo  # time zone for times without an offset
    recognized: str = ""  # the program, and how it was recognized
    pattern: str = ""  # permalink pattern
    folder: Path | None = None  # contains the configuration
    config: Path | None = None
    values: Mapping[str, Any] | None = None  # the configuration; None if it cannot be read
    is_zone_unknown: bool = False
    unread: str = ""  # a configuration that cannot be read, and the reason
    languages: frozenset[str] = frozenset()  # language codes at the end of file names, in lower case

    def without_language(self, path: Path) -> Path:
        """Return the path of a file without the language in its name: `x.md` for `x.fr.md`."""
        name, _, language = path.stem.rpartition(".")
        return path.with_name(name + path.suffix) if name and language.lower() in self.languages else path

    def url_of(self, file: MarkdownFile, folder: Path, name: str, pattern: str, now: str) -> str:
        """Return the old URL of a post, or "" if `pattern` is empty or the post was not public at `now`.

        A pattern in the front matter takes precedence. `name` is the file name without the date and the extension.
        """
        if not pattern or file.fields.get("status") != "published" or file.fields.get("published_at", NO_DATE) > now:
            return ""
        own, own_slug, date, several, one = map(
            file.values.get, ("permalink", "slug", "date", "categories", "category")
        )
        above = folder.absolute().parts[len(self.folder.parts) :] if self.folder else ()
        is_jekyll = "_posts" in self.program.post_folders
        categories = [*above[: above.index("_posts")]] if is_jekyll and "_posts" in above else []
        for value in (several.split() if isinstance(several, str) else several, one):
            names = value if isinstance(value, list) else [value]
            categories += [category for category in names if isinstance(category, str)]
        moment = datetime_of(date if isinstance(date, str) and date else file.fields["published_at"], self.zone)
        moment = moment if self.zone is UTC else moment.astimezone(self.zone)
        pattern = str(own) if is_pattern(own) else pattern
        pattern = (STYLES | self.program.permalink_styles).get(pattern, pattern)
        return _fill(pattern, moment, own_slug if isinstance(own_slug, str) else name, categories)


def bound_of(top: Path) -> Path:
    """Return the top folder whose configuration applies: the imported folder, or the site that contains it."""
    top = Path(os.path.abspath(top))
    while top.name in SITE_PARTS or (top.name in PARTS_BELOW_PARTS and top.parent.name in SITE_PARTS):
        top = top.parent
    return top


@cache
def roots_of(bound: Path) -> tuple[str, ...]:
    """Return the `roots` argument that limits `open_below` to files under this folder."""
    return real_folders([bound])


@cache
def site_of(folder: Path, bound: Path, zone: tzinfo) -> Site:
    """Find a folder's site by the configurations in it or above it, up to `bound`. `zone` is the default time zone."""
    unread, notes = "", None  # A folder of notes may be part of another program's site, so look further up.
    for parent in folders_up_to(bound, folder):
        for config in files_in(parent, CONFIG_FILES):
            try:
                values = _read(config, roots_of(bound))
            except DataError as error:
                unread = unread or f"{config} ({error})"
                if config.stem in ("_config", "hugo"):  # No unrelated program has a file with this name.
                    program = next(program for program in reversed(PROGRAMS) if config.name in program.config_files)
                    return Site(program, zone, "", program.permalink_pattern, parent, config, None, True, unread)
                continue
            for program in _programs_of(config.relative_to(parent).as_posix(), values):
                site = _site(program, parent, config, values, zone)._replace(unread=unread)
                if program.publishes_by_date:
                    return site
                notes = notes or site
    return notes or _site_by_folder(f"/{folder.relative_to(bound.parent).as_posix()}/", zone)._replace(unread=unread)


def _programs_of(name: str, values: Mapping[str, Any]) -> Iterator[Program]:
    """Yield the programs that may use a configuration with this name and these values."""
    for program in PROGRAMS:
        if name in program.config_files:
            names = () if name in program.own_config_files else program.config_names
            if not names or values.keys() & names:
                yield program


def _site_by_folder(path: str, zone: tzinfo) -> Site:
    for program in PROGRAMS:
        if name := next((name for name in program.post_folders if f"/{name}/" in path), ""):
            return Site(program, zone, f"{program.name}, by the folder {name}", program.permalink_pattern)
    return Site(ANY, zone)


def _site(program: Program, folder: Path, config: Path, values: Mapping[str, Any], zone: tzinfo) -> Site:
    name = values.get("timezone")
    own = zone_named(name) if isinstance(name, str) else None
    pattern, recognized = _pattern_of(program, values), f"{program.name}, by {config}"
    is_unknown, languages = bool(name) and not own, frozenset(_languages(program, folder, values))
    return Site(program, own or zone, recognized, pattern, folder, config, values, is_unknown, languages=languages)


def _pattern_of(program: Program, values: Mapping[str, Any]) -> str:
    """Return the permalink pattern in a configuration, or the program's default."""
    places: list[Any] = [values]
    if "_posts" in program.post_folders:  # In Jekyll, more specific settings take precedence.
        places.append(collections_in(values).get("posts"))
        for default in mappings(values.get("defaults")):
            if any(scope.get("type") == "posts" for scope in mappings(default.get("scope"))):
                places.append(default.get("values"))
    patterns = [place.get("permalink") for place in reversed(mappings(places))] if program.permalink_pattern else []
    return next(filter(is_pattern, patterns), program.permalink_pattern)


def _languages(program: Program, folder: Path, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield `en` (the default), and the language codes in a configuration and in the files beside it."""
    if program.languages:
        settings = ["en", *(values.get(name) for name in program.languages)]
        for file in files_in(folder, program.language_files):
            with suppress(DataError):
                settings.append(_read(file, roots_of(folder)))
        for setting in settings:
            names = [setting] if isinstance(setting, str) else setting if isinstance(setting, dict) else ()
            yield from (name.lower() for name in names if name)


def _read(config: Path, roots: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the values in a configuration. From a script, read top-level assignments as text. Raises DataError."""
    if config.suffix in (".json", ".toml", ".yaml", ".yml"):
        return read_data(config, roots)
    return {match[1].lower(): match[3] or match[4] or "" for match in ASSIGNED.finditer(read_text(config, roots))}


def folders_up_to(bound: Path, folder: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to `bound`."""
    return takewhile(lambda parent: parent != bound.parent, (folder, *folder.parents))


def mappings(value: Any) -> list[dict[str, Any]]:
    """Return the mappings in a list. A single mapping is treated as a list of one; any other value is ignored."""
    return [element for element in (value if isinstance(value, list) else [value]) if isinstance(element, dict)]


def collections_in(values: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Map the names of Jekyll's collections to their options, which are empty if the configuration lists only names."""
    collections = values.get("collections")
    if isinstance(collections, list):
        return {str(name): {} for name in collections}
    options = collections if isinstance(collections, dict) else {}
    return {name: value if isinstance(value, dict) else {} for name, value in options.items()}


@cache
def names_in(folder: Path) -> frozenset[str] | None:
    """Return the names in a folder, or None if it cannot be read."""
    try:
        return frozenset(os.listdir(folder))
    except OSError:
        return None


def files_in(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield the paths of the named files that exist in a folder, or may exist because the folder cannot be read."""
    entries = names_in(folder)
    for name in names if entries is None else (name for name in names if name.partition("/")[0] in entries):
        if exists(path := folder / name):
            yield path


# Placeholders for parts of the date, with their `strftime` codes
DATE_PARTS = {
    **{"year": "%Y", "short_year": "%y", "month": "%m", "short_month": "%b", "long_month": "%B", "day": "%d"},
    **{"y_day": "%j", "w_year": "%G", "week": "%V", "w_day": "%u", "short_day": "%a", "long_day": "%A"},
    **{"hour": "%H", "minute": "%M", "second": "%S"},
}
PLACEHOLDERS = sorted(
    ["title", "slug", "categories", "output_ext", "i_month", "i_day", *DATE_PARTS], key=len, reverse=True
)
PLACEHOLDER = re.compile(f":({'|'.join(PLACEHOLDERS)})")
UNKNOWN_PLACEHOLDER = re.compile(":[a-z]")


def is_pattern(text: Any) -> bool:
    """Return whether a value is the name of a style, or a pattern with only known placeholders."""
    return isinstance(text, str) and (
        text in STYLES or bool(PLACEHOLDER.search(text) and not UNKNOWN_PLACEHOLDER.search(PLACEHOLDER.sub("", text)))
    )


def _fill(pattern: str, moment: datetime, name: str, categories: Iterable[str]) -> str:
    """Fill in a permalink pattern, and return the URL of the post."""
    parts = {part: moment.strftime(code) for part, code in DATE_PARTS.items()}
    parts |= {"i_month": str(moment.month), "i_day": str(moment.day), "output_ext": ".html"}
    parts["categories"] = "/".join(dict.fromkeys(category.lower() for category in categories))
    parts["title"] = re.sub(r"[^\w.~!$&'()+,;=@]+", "-", name).strip("-")
    parts["slug"] = re.sub(r"[\W_]+", "-", name).strip("-").lower()
    return re.sub("/{2,}", "/", f"/{PLACEHOLDER.sub(lambda match: parts[match[1]], pattern)}")
