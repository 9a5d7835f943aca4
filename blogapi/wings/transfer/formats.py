"""Recognize and read file formats other than Markdown, and advise what to do with unsupported ones."""

import re
from collections.abc import Callable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple

from blogapi.wings.transfer import feeds, platforms, wordpress
from blogapi.wings.transfer.folder import MARKDOWN_SUFFIXES
from blogapi.wings.transfer.items import ExportedPost, LeftOut

ExportReader = Callable[[Path, tzinfo], Iterator[ExportedPost | LeftOut]]

HEAD_BYTES = 4096
NOT_AN_EXPORT = ("not an export", "must be a folder")  # how errors about files in another format begin
BY_PATH = "pass the path of this file itself"
BY_FEED = "import the blog's feed"
BY_WORDPRESS = "import it into WordPress (Tools, Import), and use WordPress's export"
BY_GITHUB = "use its backup to GitHub, which contains Markdown files"
BY_BODY = "save each `body_markdown`, which includes front matter, as a Markdown file"
BY_DASHBOARD = "use the export to Markdown files in Bear's dashboard"
BY_WORDPRESS_OR_FEED = f"{BY_WORDPRESS} (its importer reads the blog), or {BY_FEED}, /rss"
BY_PANDOC = "text that `pandoc -t gfm` converts to Markdown"


class Format(NamedTuple):
    """A format, which is recognized by how a file begins."""

    beginning: bytes  # a regular expression
    name: str
    way: str = BY_PATH  # what to do with an unsupported file
    read_xml: ExportReader | None = None


# The first format that matches applies.
FORMATS = (
    Format(rb"wordpress\.org/export", "an export from WordPress", read_xml=wordpress.read_posts),
    Format(rb"<feed(?s:.)*?[Bb]logger", "an export from Blogger", read_xml=feeds.read_posts),
    Format(rb"<(?:feed|rss|rdf:RDF)[\s>]", "a feed", read_xml=feeds.read_posts),
    Format(rb"^\s*\{\s*\"(?:db|meta|data)\"", "an export from Ghost"),
    Format(rb"jsonfeed\.org/version", "a feed"),
    Format(rb"^\s*\{\s*\"posts\"\s*:\s*\[(?s:.)*\"cuid\"", "an export from Hashnode", BY_GITHUB),
    Format(rb"^\s*\{\s*\"username\"(?s:.)*\"collections\"", "an export from Write.as", f"{BY_FEED}, /feed/"),
    Format(rb"^\s*\[(?s:.)*\"body_markdown\"", "articles from dev.to", BY_BODY),
    Format(rb"^(?:AUTHOR|TITLE|BASENAME): ", "an export from Movable Type or TypePad", BY_WORDPRESS),
    Format(rb"^(?:\xef\xbb\xbf)?[\w,\" ]*\bmake[_ ]discoverable\b", "a CSV file from Bear", BY_DASHBOARD),
    Format(rb"^(?:\xef\xbb\xbf)?[\w,\" ]*\bInternal ID\b", "an export from Wix", f"{BY_FEED}, /blog-feed.xml, instead"),
)
# regular expression for a file's path -> its format, and advice on it
ADVICE_BY_NAME = {
    r"/html/\d{9,}\.html$|/payload-\d+\.json$|/posts_index\.html$": f"an export from Tumblr: {BY_WORDPRESS_OR_FEED}",
    r"(?i)\.(?:mdown|mkd|mkdn|mkdown|mdwn|qmd|rmd)$": "Markdown: give it the extension .md",
    r"(?i)\.(?:rst|org|textile|adoc|asciidoc|ipynb|docx|odt|epub|html?|wiki|mediawiki|opml)$": BY_PANDOC,
    r"(?i)\.zip$": "an archive: unpack it, and import the folder",
}


def read_xml(path: Path, zone: tzinfo) -> Iterator[ExportedPost | LeftOut]:
    """Recognize the format of an XML file, and yield its posts."""
    file_format = format_of(path)
    return ((file_format and file_format.read_xml) or wordpress.read_posts)(path, zone)


# file extension -> reader of an export
READERS: dict[str, ExportReader] = {
    **dict.fromkeys((".xml", ".atom", ".rss"), read_xml),
    # These readers need no zone, because all times are in UTC.
    ".json": lambda path, zone: platforms.read_ghost(path),
    ".html": lambda path, zone: platforms.read_medium(path),
    ".csv": lambda path, zone: platforms.read_substack(path),
}
READABLE = (*MARKDOWN_SUFFIXES, *READERS)


def is_part(path: Path) -> bool:
    """Return whether a file's name shows that it is one of the files of an export."""
    return path.name == "posts.csv" or bool(platforms.MEDIUM_FILE.fullmatch(path.name))


def format_of(path: Path) -> Format | None:
    """Recognize the format of a file by how it begins. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    return next((file_format for file_format in FORMATS if re.search(file_format.beginning, head)), None)


def advice_on(path: Path) -> str:
    """Return the format of a file and advice on it, or "" if the format is unknown."""
    try:
        file_format = format_of(path) if path.is_file() else None  # Opening a pipe might never end.
    except OSError:
        return ""
    if file_format:
        return f"{file_format.name}: {file_format.way}"
    return next((advice for pattern, advice in ADVICE_BY_NAME.items() if re.search(pattern, str(path))), "")
