"""The notes on imported posts, in the order in which a report prints them."""

from enum import StrEnum

from blogapi.documents import FIELDS, MAX_TAG, MAX_TAGS, SHORT_TEXTS

# The first line that a note is about, perhaps with the names of values
NoteDetails = int | tuple[int | None, str] | None

# Parts of the texts below
LIMITS = ", ".join(f"{name} {FIELDS[name].max_length:,}" for name in SHORT_TEXTS)
DATE_FROM = "--date-from NAME takes a name in front matter for the date, and they are published; else add `date`"
PUBLISHED_NOW = "Published at the time of this import:"
PARAMS_BOUNDS = "params have at most 500 values and 32 KiB, names 64 characters"
STATIC = "--static DIR finds those of the site's root"
REPLACE = "only the old site knows them, so replace them"


class Note(StrEnum):
    """A note: its name, how a report begins its line, and what to know or do."""

    HIDDEN = "hidden", "Kept as drafts:", "they were not public; publish those that may be read"
    OTHER_DATES = "other dates", "Drafts without a date, although something looks like one:", DATE_FROM
    NO_DATES = "no dates", PUBLISHED_NOW, "no date was understood; `date` would be"
    NO_DATES_IN_EXPORTS = "no dates in exports", PUBLISHED_NOW, "the export has no date for them"
    TITLES = "titles", "Titles made from the text, of", "`title` would be the title"
    TITLES_FROM_NAMES = (
        "titles from names",
        "Titles made from the name of the file, or from the slug, of",
        "`title` would be the title",
    )
    LONG_TEXTS = "long texts", "Texts are shortened in", f"the limits are {LIMITS} characters; params keep all of them"
    MANY_TAGS = (
        "many tags",
        "Tags are left out or shortened in",
        f"a post has at most {MAX_TAGS}, each of {MAX_TAG} characters",
    )
    LARGE_PARAMS = "large params", "Values in params are left out of", PARAMS_BOUNDS
    CONTROL_CHARACTERS = "control characters", "Control characters are removed from", "they cannot be shown"
    RELATIVE_IMAGES = (
        "relative images",
        "Images not found, in",
        f"{STATIC}, --base-url URL makes their addresses absolute",
    )
    LOST_IMAGES = (
        "lost images",
        "Addresses of this service without an image in",
        "an export of their blog has them in `images`",
    )
    IMAGES_IN_PARAMS = (
        "images in params",
        "Images named only in params and not found, in",
        f"params keep them; {STATIC}",
    )
    COVERS = "covers", "Covers not found, in", f"params keep them; {STATIC}"
    DATES_TO_COME = (
        "dates to come",
        "Dates to come that are dropped in",
        "a draft has none; publish or schedule it with a date",
    )
    SHORTCODES = "shortcodes", "Shortcodes or imports in", REPLACE
    WIKI_LINKS = "wiki links", "Wiki links in", REPLACE
    LINKS_TO_FILES = (
        "links to files",
        "Links to files in",
        "they should lead to slugs, or to where the site has the files",
    )
    BLOCKS = "blocks", "Reusable blocks that are missing in", "export all content, not only posts"
    HTML = "HTML", "HTML in", "it stays in the Markdown"
    SCRIPTS = "scripts", "Scripts or forms in", "they stay in the Markdown; the site decides whether they work"
    FORMER_SLUGS = "former slugs", "Former slugs left out of", "other posts have or had them, or there are more than 20"
    TIME_ZONES = (
        "time zones",
        "Times of BLOGAPI_TIMEZONE in",
        "the site's configuration is invalid, or its zone is unknown",
    )
    OTHER_SLUGS = "other slugs", "Changed slugs of", "--redirects FILE lists the old ones"
    OLD_ADDRESSES = "old addresses", "Other addresses of", "--redirects FILE lists them"
    SHARED_ADDRESSES = (
        "shared addresses",
        "Old addresses that other posts have, too, of",
        "--redirects FILE lists them for one post",
    )

    beginning: str
    remedy: str

    def __new__(cls, name: str, beginning: str, remedy: str) -> "Note":
        """Create a note that is equal to its name."""
        note = str.__new__(cls, name)
        note._value_, note.beginning, note.remedy = name, beginning, remedy
        return note
