"""Read the Markdown files of a synced folder."""

import os
from datetime import tzinfo
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from blogapi.wings.sync.ignored import Ignored
from blogapi.wings.transfer.folder import Folder
from blogapi.wings.transfer.images import LocalImages
from blogapi.wings.transfer.importer import checked
from blogapi.wings.transfer.items import Failure, Item
from blogapi.wings.transfer.sources import Sources


class LocalFiles(NamedTuple):
    """The files of a folder by name, which is their path below it."""

    items: dict[str, Item]  # the posts in those that were read
    sha256: dict[str, str]  # also of those that cannot be read as a post
    left_out: dict[str, str]  # the reasons
    failures: list[Failure]  # whose sources are names
    sources: Sources  # what a report says of the folder as a whole


def read_files(folder: Folder, images: LocalImages, zone: tzinfo, now: float, with_git: bool) -> LocalFiles:
    """Read all files of a folder. Raises RemoteError if an ignore file cannot be read."""
    ignored, prefix = Ignored(folder, with_git), os.path.join(folder.path, "")
    items: dict[str, Item] = {}
    left_out: dict[str, str] = {}
    failures: list[Failure] = []

    def name_of(path: str) -> str:
        return path.removeprefix(prefix)

    def skip(file: Path) -> str:
        name = name_of(str(file))
        if why := ignored.why(name):
            left_out[name] = why
        return why

    with TemporaryFile() as spool:
        sources = Sources([folder.path], spool, now, images=images, zone=zone, skip=skip, is_movable=True)
        for found in map(checked, sources):
            if isinstance(found, Item):
                items[name_of(found.source)] = found
            else:  # A reason can begin with the name of another file.
                failures += (each._replace(source=name_of(each.source), reason=name_of(each.reason)) for each in found)
    sha256 = {name_of(path): digest for path, digest in sources.sha256.items()}
    return LocalFiles(items, sha256, left_out, failures, sources)
