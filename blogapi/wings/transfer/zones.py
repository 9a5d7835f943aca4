"""The time zone of a site, as the configuration of Jekyll or Hugo names it."""

import re
from contextlib import suppress
from functools import cache
from pathlib import Path

CONFIGURATIONS = ("_config.yml", "hugo.toml", "hugo.yaml", "config.toml", "config.yaml", "config/_default/hugo.toml")
MAX_BYTES = 64 * 1024  # of a configuration that is read
# `timezone: Europe/Berlin`, or Hugo's `timeZone = "Europe/Berlin"`, whose names have no case; not in a table
TIMEZONE = re.compile(rb"^time(?:z|Z)one[ \t]*[:=][ \t]*[\"']?([^\s\"'#]{1,100})", re.MULTILINE)
TABLE = re.compile(rb"^[ \t]*\[", re.MULTILINE)


@cache
def configured(folder: Path) -> str:
    """Return the name of the zone in the configuration of the site that a folder belongs to; nothing without one."""
    for path in (parent / name for parent in (folder, *folder.parents) for name in CONFIGURATIONS):
        if path.is_file():
            with suppress(OSError), path.open("rb") as file:
                found = TIMEZONE.search(TABLE.split(file.read(MAX_BYTES))[0])
                return found[1].decode(errors="replace") if found else ""
    return ""
