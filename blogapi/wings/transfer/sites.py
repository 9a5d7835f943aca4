"""The sites that posts come from: what their configurations say."""

import os
from collections.abc import Mapping
from datetime import tzinfo
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from blogapi.config import zone_named
from blogapi.wings.transfer.data import DataError, read_data
from blogapi.wings.transfer.images import real_folders
from blogapi.wings.transfer.permalinks import pattern_of

JEKYLL_CONFIG = "_config.yml"
HUGO_CONFIGS = tuple(
    f"{name}.{kind}"
    for name in ("hugo", "config", "config/_default/hugo", "config/_default/config")
    for kind in ("toml", "yaml", "yml", "json")
)
# Folders of a site that are often given instead of it; then the configuration is in a folder above.
PARTS = {"_posts", "_drafts", "content", "source", "src"}
PARTS_OF_PARTS = {"posts", "post", "blog", "drafts"}  # only below one of PARTS


class Site(NamedTuple):
    """What the configuration of a site says about its posts."""

    zone: tzinfo  # for times without an offset
    pattern: str = "date"  # for addresses; Jekyll's default
    folder: Path | None = None  # where Jekyll's configuration is
    config: Path | None = None
    values: Mapping[str, Any] | None = None  # of the configuration; None: it cannot be read
    is_zone_unknown: bool = False
    unread: str = ""  # a configuration that cannot be read, and why

    @property
    def recognized(self) -> str:
        """The program, and the file by which it was recognized."""
        return f"{'Jekyll' if self.folder else 'Hugo'}, by {self.config}" if self.values is not None else ""


def bound_of(top: Path) -> Path:
    """Return the highest folder whose configuration counts: the one that was given, or the site that it is a part of.

    Nothing above is read: it belongs to something else.
    """
    top = Path(os.path.abspath(top))
    while top.name in PARTS or (top.name in PARTS_OF_PARTS and top.parent.name in PARTS):
        top = top.parent
    return top


@cache
def roots_of(bound: Path) -> tuple[str, ...]:
    """Return the folder in which files may be opened, as `open_below` takes it."""
    return real_folders([bound])


@cache
def site_of(folder: Path, bound: Path, zone: tzinfo) -> Site:
    """Return the site whose configuration is in a folder or above, up to `bound`. Times are in `zone` by default.

    Hugo has many names for that file, so it counts only with an address or a time zone.
    """
    unread = ""
    for parent in (folder, *folder.parents):
        for config in filter(exists, map(parent.joinpath, (JEKYLL_CONFIG, *HUGO_CONFIGS))):
            site = parent if config.name == JEKYLL_CONFIG else None
            try:
                values = read_data(config, roots_of(bound))
            except DataError as error:
                unread = unread or f"{config} ({error})"
                if site or config.stem == "hugo":
                    return Site(zone, folder=site, config=config, is_zone_unknown=True, unread=unread)
                continue
            if site or {"timezone", "baseurl"} & values.keys():
                name = values.get("timezone")
                own = zone_named(name) if isinstance(name, str) else None
                return Site(own or zone, pattern_of(values), site, config, values, bool(name) and not own, unread)
        if parent == bound:
            break
    return Site(zone, unread=unread)


def exists(path: Path) -> bool:
    """Return whether there is a file, or may be one: its folder cannot be read."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True
