"""What an import reads: posts in exports, items to store, and what is not imported."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, NamedTuple

from blogapi.wings.markdown.files import MarkdownFile
from blogapi.wings.markdown.front_matter import MarkdownError, shown
from blogapi.wings.transfer.notes import Note, NoteDetails

NO_FILE = MarkdownFile({})


@dataclass
class Item:
    """A post that was read."""

    source: str  # name of the file, for messages
    fields: dict[str, Any]  # fields of a post, with a `slug`, as in JSON; not validated yet
    created_at: str | None  # RFC 3339; None: now
    file: MarkdownFile = NO_FILE  # the Markdown file, unless the post is from an export
    old_paths: tuple[str, ...] = ()  # former addresses
    own_path: str = field(default="", compare=False)  # path of the file below the folder that was given
    notes: dict[Note, NoteDetails] = field(default_factory=dict)
    parents: tuple[str, ...] = field(default=(), compare=False)  # go in front of a slug that other posts have, too
    images: tuple[str, ...] = ()  # files of the images in the post, which are stored before it
    missing: tuple[str, ...] = ()  # addresses of images that were not found
    zone: tzinfo = field(default=UTC, compare=False)  # time zone of its site
    slug_prefix: str = field(default="", compare=False)  # in front of these: the language, or the folder of its address


class LeftOut(NamedTuple):
    """A file, folder or part of an export that is not imported."""

    kind: str  # a noun: a report counts those of each kind
    path: str = ""  # if a report names it


@dataclass
class ExportedPost:
    """A post or a page in an export, as its program wrote it."""

    id: str
    fields: dict[str, Any]  # fields of a post, as in JSON, with `html` in place of `content`; empty ones do not count
    kind: str = "post"  # or "page"
    created_at: str = ""  # RFC 3339
    paths: tuple[str, ...] = ()  # its addresses, the current one first
    values: Mapping[str, Any] = field(default_factory=dict)  # all that may say that it was hidden
    comments: int = 0
    has_missing_blocks: bool = False  # whether it shows reusable blocks that are not in the export
    file: str = ""  # the file of its HTML, if it is another one
    error: str = ""  # why it cannot be read


class Failure(NamedTuple):
    """A file or a post that cannot be imported."""

    source: str
    line: int | None
    reason: str

    @classmethod
    def of(cls, path: Path, error: OSError | MarkdownError) -> "Failure":
        """Return the failure to read a file."""
        if isinstance(error, MarkdownError):
            return cls(str(path), error.line, error.reason)
        reason = "no such file or folder" if isinstance(error, FileNotFoundError) else error.strerror
        return cls(str(path), None, reason or "cannot be read")

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return shown(f"{place}: {self.reason}")
