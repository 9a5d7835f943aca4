"""Find the files in a folder that an import reads."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from blogapi.wings.markdown.programs import HUGO_CONFIGS
from blogapi.wings.transfer.folder import MARKDOWN_SUFFIXES
from blogapi.wings.transfer.formats import is_part
from blogapi.wings.transfer.items import Failure, LeftOut
from blogapi.wings.transfer.sites import files_in

OUR_FILES = ".blogapi"  # prefix of the files that a push or a pull keeps
# Folders of built or installed files, which are left out like hidden ones
NOT_ENTERED = ("node_modules", "bower_components", "vendor", "_site")
TEMPLATES = "archetypes"  # in Hugo
SECTION_INDEX = "_index"  # the page of a whole section in Hugo and Zola


def files_below(
    top: Path, roots: tuple[str, ...], skip: Callable[[Path], str], with_exports: bool
) -> Iterator[Path | LeftOut | Failure]:
    """Yield the files to read below a folder, folder by folder and sorted by name, and what is left out.

    `skip` returns the kind of a Markdown file that is left out, else "". Links are followed into the folders `roots`.
    """
    folders = [top]
    for folder in folders:
        try:
            os.stat(f"{folder}/.")  # From Python 3.14 on, is_dir() hides a missing permission.
            entries = sorted(folder.iterdir())
            below = [entry for entry in entries if entry.is_dir()]
        except OSError as error:
            yield Failure.of(folder, error)
            continue
        for entry in below:
            if reason := why_not_entered(entry):
                yield LeftOut(reason, str(entry))
            else:
                folders.append(entry)
        others = {*entries} - {*below}
        for file in filter(others.__contains__, entries):
            yield from _file(file, roots, skip, with_exports)


def why_not_entered(folder: Path) -> str:
    """Return the kind of a folder that is not entered; "" for any other."""
    if folder.name.startswith("."):
        return "folder beginning with a dot"
    if folder.name in NOT_ENTERED or (folder.name == TEMPLATES and any(files_in(folder.parent, HUGO_CONFIGS))):
        return f"folder called {folder.name}"
    return "folder behind a link" if folder.is_symlink() else ""


def _file(
    file: Path, roots: tuple[str, ...], skip: Callable[[Path], str], with_exports: bool
) -> Iterator[Path | LeftOut]:
    suffix = file.suffix.lower()
    if file.name.startswith(OUR_FILES):
        return
    if file.name.startswith("."):
        yield LeftOut("file beginning with a dot")
    elif suffix not in MARKDOWN_SUFFIXES and not (with_exports and is_part(file)):
        yield LeftOut(f"file in {file.suffix}" if suffix else "file without a suffix", str(file))
    elif file.name.partition(".")[0] == SECTION_INDEX:
        yield LeftOut("page of a section")
    elif kind := skip(file):
        yield LeftOut(kind, str(file))
    elif file.is_symlink() and not os.path.realpath(file).startswith(roots):
        yield LeftOut("link out of the folders")
    else:
        yield file
