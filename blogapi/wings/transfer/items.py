"""Define the results of reading files: items to store, posts in exports, failures, and files that are left out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from blogapi.documents import FIELDS, MAX_TAG, MAX_TAGS, SHORT_TEXTS
from blogapi.markdown.files import MarkdownFile
from blogapi.markdown.front_matter import MarkdownError, shown

# The first line that a note is about (if known), and the names of the values (if any)
NoteDetails = int | tuple[int | None, str] | None

# Parts of the notes
LIMITS = ", ".join(f"{name} {FIELDS[name].max_length:,}" for name in SHORT_TEXTS)
PARAMS_LIMITS = "params may have at most 500 values, 32 KiB, and names of 64 characters"
PUBLISHED_NOW = "Published at the time of this import:"
STATIC = "--static DIR finds those whose URL begins with a slash"
REPLACE = "only the old site understands them; replace them"
MADE_TITLE = "add a `title` to change it"


class Note(StrEnum):
    """A note about posts: its name, how its line in the report begins, and advice."""

    HIDDEN = "hidden", "Kept as drafts:", "something hides them; publish those that are meant to be public"
    NOT_PUBLISHED = "not published", "Drafts with a date:", "nothing says they were public; --publish publishes them"
    NO_INDEX = "no index", "Hidden from search engines:", "the new site must hide them again"
    OTHER_DATES = "other dates", "Drafts without a date:", "--date-from NAME reads the date from one of these names"
    NO_DATES = "no dates", PUBLISHED_NOW, "no date was recognized; add a `date`"
    NO_DATES_IN_EXPORTS = "no dates in exports", PUBLISHED_NOW, "the export has no date for them"
    UNREAD_DATES = "unread dates", "Kept as drafts:", "their dates cannot be read; publish them with valid ones"
    NO_TEXT = "no text", "Links, lists or images became the text of", "these posts had no text"
    TITLES = "titles", "Titles taken from the text of", MADE_TITLE
    TITLES_FROM_NAMES = "titles from names", "Titles made from the file name or the slug of", MADE_TITLE
    LONG_TEXTS = "long texts", "Texts shortened in", f"the limits are {LIMITS} characters; params keep the full texts"
    MANY_TAGS = "many tags", "Tags dropped or shortened in", f"at most {MAX_TAGS} tags of {MAX_TAG} characters each"
    LARGE_PARAMS = "large params", "Params dropped from", PARAMS_LIMITS
    CONTROL_CHARACTERS = "control characters", "Control characters removed from", "such characters cannot be shown"
    RELATIVE_IMAGES = "relative images", "Images not found in", f"{STATIC}; --base-url URL makes all URLs absolute"
    LOST_IMAGES = "lost images", "Images missing from this service in", "an export of their blog contains them"
    IMAGES_IN_PARAMS = "images in params", "Images named in params but not found in", f"params keep them; {STATIC}"
    COVERS = "covers", "Covers not found in", f"params keep them; {STATIC}"
    FUTURE_DATES = "future dates", "Future dates dropped from", "drafts have none; schedule them with a date"
    SHORTCODES = "shortcodes", "Shortcodes or imports in", REPLACE
    WIKI_LINKS = "wiki links", "Wiki links in", REPLACE
    LINKS_TO_FILES = "links to files", "Links to files in", "link to slugs, or to where the site serves the files"
    BLOCKS = "blocks", "Reusable blocks missing from", "export all content, not only posts"
    HTML = "HTML", "HTML in", "it is kept as HTML"
    SCRIPTS = "scripts", "Scripts or forms in", "they are kept; whether they work depends on the site"
    FORMER_SLUGS = "former slugs", "Former slugs dropped from", "another post has or had them, or there are over 20"
    TIME_ZONES = "time zones", "BLOGAPI_TIMEZONE used for", "the site's configuration or time zone is invalid"
    OTHER_SLUGS = "other slugs", "Slugs changed in", "--redirects FILE lists the old ones"
    OLD_URLS = "old URLs", "Old URLs of", "--redirects FILE lists them"
    SHARED_URLS = "shared URLs", "Shared old URLs in", "--redirects FILE lists each once"

    beginning: str
    remedy: str

    def __new__(cls, name: str, beginning: str, remedy: str) -> "Note":
        """Create a note that compares equal to its name."""
        note = str.__new__(cls, name)
        note._value_, note.beginning, note.remedy = name, beginning, remedy
        return note


NO_FILE = MarkdownFile({})


@dataclass
class Item:
    """A post that was read."""

    source: str  # name of the file, for messages
    fields: dict[str, Any]  # fields of a post, as in JSON; they include a slug, and have not been validated
    created_at: str | None  # RFC 3339; None means now
    file: MarkdownFile = NO_FILE  # the Markdown file of a post that is not from an export
    old_paths: tuple[str, ...] = ()  # former URLs
    own_path: str = field(default="", compare=False)  # path of the file within the given folder
    notes: dict[Note, NoteDetails] = field(default_factory=dict)
    parents: tuple[str, ...] = field(default=(), compare=False)  # prefixes in case other posts have the same slug
    images: tuple[str, ...] = ()  # files of the images in the post
    missing: tuple[str, ...] = ()  # URLs of images that were not found
    zone: tzinfo = field(default=UTC, compare=False)  # the site's time zone
    slug_prefix: str = field(default="", compare=False)  # the first slug prefix to try: language or folder


class LeftOut(NamedTuple):
    """A file, folder or part of an export that is left out."""

    kind: str  # a noun; the report shows a count for each kind
    path: str = ""  # set if the report lists the path


@dataclass
class ExportedPost:
    """A post or page in an export."""

    id: str
    # Fields of a post as in JSON, with `html` in place of `content`. Empty fields and params are ignored.
    fields: dict[str, Any]
    kind: str = "post"  # or "page"
    created_at: str = ""  # RFC 3339; if empty, the date of publication
    date_text: str = ""  # the date of publication, as written
    paths: tuple[str, ...] = ()  # its URLs, the current one first
    values: Mapping[str, Any] = field(default_factory=dict)  # values that may show that it was hidden
    comments: int = 0
    has_missing_blocks: bool = False  # whether it uses reusable blocks that the export lacks
    file: str = ""  # separate HTML file, if any
    error: str = ""  # why it cannot be read


class Failure(NamedTuple):
    """A file or a post that cannot be imported."""

    source: str
    line: int | None
    reason: str

    @classmethod
    def of(cls, path: Path, error: OSError | MarkdownError) -> "Failure":
        """Describe why a file cannot be read."""
        if isinstance(error, MarkdownError):
            return cls(str(path), error.line, error.reason)
        reason = "no such file or folder" if isinstance(error, FileNotFoundError) else error.strerror
        return cls(str(path), None, reason or "cannot be read")

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return shown(f"{place}: {self.reason}")
