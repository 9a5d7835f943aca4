"""The content of other sites: constructs that work only there, and the addresses of images."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urljoin

from blogapi.text import CONTROL

# Code, which is skipped. A fence that is never closed ends with the text, so that each text is searched once.
FENCE = r"^[ ]{0,3}(?P<fence>`{3,}+|~{3,}+)[^\n]*+\n(?s:.*?)(?:^[ ]{0,3}(?P=fence)[`~]*[ \t]*$|\Z)"
INLINE = r"`[^`\n]++`"
# Addresses of images: in elements, in Markdown, and in definitions of references.
RELATIVE = r"(?![a-z][a-z0-9+.-]*:|//|[#{])"
ADDRESS = (
    r"(?P<address>(?:(?<=<)[^<>\n]+(?=>)|(?<=\")[^\"<>\n]+(?=\")|(?<=')[^'<>\n]+(?=')"
    r"|[^\s\"'<>()]+(?:\([^\s\"'<>()]*\)[^\s\"'<>()]*)*))"
)
BEFORE = (
    r"(?P<before><img\b[^<>]*?\bsrc\s*=\s*[\"']?|!\[[^\]\[\n]*\]\(\s*<?"
    r"|^[ ]{0,3}\[[^\]\[\n]+\]:[ \t]*<?(?=[^\s<>]+\.(?:avif|gif|jpe?g|png|svg|webp)))"
)
EMBED = r"!\[\[(?P<name>[^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|(?P<label>[^\[\]\n]*))?\]\]"  # of Obsidian
FLAGS = re.MULTILINE | re.IGNORECASE
CODE_OR_IMAGE = re.compile(f"{FENCE}|{INLINE}|{EMBED}|{BEFORE}{ADDRESS}", FLAGS)
IS_RELATIVE = re.compile(f"{RELATIVE}.", re.IGNORECASE)
HOST = re.compile(r"(?:https?:)?//(?:[^/?#@]*@)?(\[[^]/?#]*\]|[^/?#:]+)", re.IGNORECASE)
CODE = re.compile(f"{FENCE}|{INLINE}", re.MULTILINE)
POST_LINK = r"\]\((?![a-z]+:)[^\s()]+\.mdx?[#)]"
# Other files can still be there if their addresses begin at the root.
FILE_LINK = r"(?:(?<!!)\[[^\[\]\n]*|\))\]\(<?(?![a-z]+:|[/#])[^\s()]+\.(?:avif|gif|jpe?g|mp[34]|pdf|png|svg|webp|zip)\b"
# Constructs that work on one site only.
NOT_PORTABLE = {
    "relative images": re.compile(f"{BEFORE}{RELATIVE}{ADDRESS}", FLAGS),
    "shortcodes": re.compile(
        r"\{\{|\{%|\[gallery\b|\[/[a-z][\w-]*\]|\[[a-z][\w-]*\s+[\w-]+=[^\[\]]*\]|^import .+ from ['\"]", re.MULTILINE
    ),
    "wiki links": re.compile(r"\[\[[^\[\]\n]+\]\]"),
    "links to files": re.compile(f"{POST_LINK}|{FILE_LINK}", re.IGNORECASE),
    "HTML": re.compile(r"</?[a-z][\w.-]*(?:\s[^<>]*)?/?>", re.IGNORECASE),
}


def host_of(address: str) -> str:
    """Return the host of an absolute URL; nothing for any other address."""
    match = HOST.match(address)
    return match[1].lower() if match else ""


def absolute(address: str, site: str, folder: str = "") -> str:
    """Return the URL of an image in a folder of a site, if one is given. An address that is not relative stays."""
    if not site or not IS_RELATIVE.match(address):
        return address
    return f"{site}{address}" if address.startswith("/") else urljoin(f"{site}/{folder}/", address)


def with_images(
    content: str, replaced: Callable[[str], str], embedded: Callable[[str, str], str | None] = lambda name, label: None
) -> str:
    """Replace the addresses of the images in Markdown, and what Obsidian embeds by the name of its file."""

    def replace(match: re.Match[str]) -> str:
        if match["address"]:
            return match["before"] + replaced(match["address"])
        return (match["name"] and embedded(match["name"], match["label"] or "")) or match[0]

    return CODE_OR_IMAGE.sub(replace, content)


def not_portable(content: str) -> dict[str, int]:
    """Return the kinds of constructs in Markdown that work only on the old site, each with its first line."""
    content = CODE.sub(lambda match: "\n" * match[0].count("\n"), content)
    found = {name: match for name, pattern in NOT_PORTABLE.items() if (match := pattern.search(content))}
    return {name: content.count("\n", 0, match.start()) + 1 for name, match in found.items()}


def without_controls(fields: dict[str, Any]) -> dict[str, None]:
    """Remove control characters from the texts of a post; return the note of it, if there were some."""
    found = [name for name in ("title", "content", "html", "excerpt") if CONTROL.search(fields.get(name, ""))]
    fields.update({name: CONTROL.sub("", fields[name]) for name in found})
    return {"control characters": None} if found else {}
