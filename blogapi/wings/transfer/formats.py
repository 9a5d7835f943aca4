"""Recognize files in formats that an import does not read, or reads only by their own path, and say what to do."""

import re
from pathlib import Path

HEAD_BYTES = 4096
BY_PATH = "give it by its own path"
BY_WORDPRESS = "import it into WordPress (Tools, Import), and use the export of that"
BY_PANDOC = "a text that `pandoc -t gfm` converts to Markdown"
# What a file is and what to do, by its beginning
HEADS = {
    re.compile(rb"wordpress\.org/export"): f"an export of WordPress: {BY_PATH}",
    re.compile(rb"<feed(?s:.)*?[Bb]logger"): f"an export of Blogger: {BY_PATH}",
    re.compile(rb"<(?:feed|rss|rdf:RDF)[\s>]"): f"a feed: {BY_PATH}",
    re.compile(rb"^\s*\{\s*\"(?:db|meta|data)\""): f"an export of Ghost: {BY_PATH}",
    re.compile(rb"jsonfeed\.org/version"): f"a feed: {BY_PATH}",
    re.compile(rb"^\s*\[(?s:.)*\"body_markdown\""): (
        "articles of dev.to: make a Markdown file of each `body_markdown`, which has front matter"
    ),
    re.compile(rb"^(?:AUTHOR|TITLE|BASENAME): "): f"an export of Movable Type or TypePad: {BY_WORDPRESS}",
    re.compile(rb"^(?:\xef\xbb\xbf)?[\w,\" ]*\bmake_discoverable\b"): (
        "a CSV file of Bear: use the export as Markdown files in Bear's dashboard"
    ),
    re.compile(rb"^(?:\xef\xbb\xbf)?[\w,\" ]*\bInternal ID\b"): (
        "an export of Wix: import the feed of the blog, /blog-feed.xml, instead"
    ),
}
# The same by its name
NAMES = {
    re.compile(r"/html/\d{9,}\.html$|/payload-\d+\.json$|/posts_index\.html$"): (
        f"an export of Tumblr: {BY_WORDPRESS} (its importer reads the blog), or import the blog's feed, /rss"
    ),
    re.compile(r"\.(?:mdown|mkd|mkdn|mkdown|mdwn|qmd|rmd)$", re.IGNORECASE): "Markdown: rename it to .md",
    re.compile(
        r"\.(?:rst|org|textile|adoc|asciidoc|ipynb|docx|odt|epub|html?|wiki|mediawiki|opml)$", re.IGNORECASE
    ): BY_PANDOC,
    re.compile(r"\.zip$", re.IGNORECASE): "an archive: unpack it, and give the folder",
}


def advice_on(path: Path) -> str:
    """Return what a file is and what to do with it; "" if that is not known."""
    head = b""
    try:
        if path.is_file():  # To open a pipe might never end.
            with path.open("rb") as file:
                head = file.read(HEAD_BYTES)
    except OSError:
        return ""
    found = next((said for pattern, said in HEADS.items() if pattern.search(head)), "")
    return found or next((said for pattern, said in NAMES.items() if pattern.search(str(path))), "")
