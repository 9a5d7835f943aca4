"""The addresses of posts on their old site: from front matter, or by the site's pattern, as in Jekyll."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from blogapi.documents import is_slug
from blogapi.wings.markdown.dates import datetime_of
from blogapi.wings.markdown.files import MarkdownFile
from blogapi.wings.markdown.programs import ALIAS_NAMES, PERMALINK_NAMES, STYLES, Program

# Names in a pattern that stand for a part of the date, and the code of that part for `strftime`
DATE_PARTS = {
    **{"year": "%Y", "short_year": "%y", "month": "%m", "short_month": "%b", "long_month": "%B", "day": "%d"},
    **{"y_day": "%j", "w_year": "%G", "week": "%V", "w_day": "%u", "short_day": "%a", "long_day": "%A"},
    **{"hour": "%H", "minute": "%M", "second": "%S"},
}
PLACEHOLDERS = sorted(
    ["title", "slug", "categories", "output_ext", "i_month", "i_day", *DATE_PARTS], key=len, reverse=True
)
PLACEHOLDER = re.compile(f":({'|'.join(PLACEHOLDERS)})")
UNKNOWN_PLACEHOLDER = re.compile(":[a-z]")


def read_paths(others: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the paths of a post, and its older ones, from the front matter of another program."""
    values = {name.lower(): value for name, value in others.items()}
    paths = [path for name in PERMALINK_NAMES if (path := path_of(values.get(name)))]
    aliases: list[str] = []
    for found in map(values.get, ALIAS_NAMES):
        found = map(path_of, found if isinstance(found, list) else [found])
        aliases += [path for path in found if "/" in path]  # In Obsidian, aliases are names.
    return paths, aliases


def split_address(address: str) -> tuple[str, str]:
    """Return the folder and the last segment of an address, without an extension and `index`."""
    path = re.sub(r"(^|/)index$", "", re.sub(r"\.html?$", "", address)).strip("/")
    folder, _, name = path.rpartition("/")
    return folder, name


def former_slugs(aliases: Iterable[str], addresses: Iterable[str]) -> list[str]:
    """Return the slugs at the end of older addresses that are otherwise the same as one of the post's addresses."""
    folders = {split_address(address)[0] for address in addresses}
    return [slug for folder, slug in map(split_address, aliases) if folder in folders and is_slug(slug)]


def path_of(value: Any) -> str:
    """Return the path of an address; "" if it is a pattern or the name of a style."""
    if not isinstance(value, str) or value in (*STYLES, "false", "true", "null", "~") or "{" in value:
        return ""
    path = re.sub(r"^[a-z]+://[^/]*|[?#].*", "", value)
    return "" if re.search("(^|/|-):[a-z]", path) else path


def address_of_file(path: Path, folders: tuple[str, ...]) -> str:
    """Return the address of a file in some folders of a site. In Hugo, those below `content` count."""
    parts = path.absolute().parts[:-1]
    if "content" in parts:
        folders = parts[len(parts) - parts[::-1].index("content") :]
    return "/".join(("", *(folder for folder in folders if folder not in ("src", "source")), path.stem))


def is_pattern(text: Any) -> bool:
    """Return whether a value is the name of a style, or a pattern that contains only known placeholders."""
    if not isinstance(text, str):
        return False
    return text in STYLES or bool(
        PLACEHOLDER.search(text) and not UNKNOWN_PLACEHOLDER.search(PLACEHOLDER.sub("", text))
    )


def address(
    pattern: str, moment: datetime, name: str, categories: Iterable[str], styles: Mapping[str, str] = STYLES
) -> str:
    """Return the address of a post in a pattern or a style; `name` is its file name without date and extension."""
    parts = {part: moment.strftime(code) for part, code in DATE_PARTS.items()}
    parts |= {"i_month": str(moment.month), "i_day": str(moment.day), "output_ext": ".html"}
    parts["categories"] = "/".join(dict.fromkeys(category.lower() for category in categories))
    parts["title"] = re.sub(r"[^\w.~!$&'()+,;=@]+", "-", name).strip("-")
    parts["slug"] = re.sub(r"[\W_]+", "-", name).strip("-").lower()
    path = PLACEHOLDER.sub(lambda match: parts[match[1]], styles.get(pattern, pattern))
    return re.sub("/{2,}", "/", f"/{path}")


def address_by_pattern(
    file: MarkdownFile, folder: Path, name: str, pattern: str, site: Path | None, program: Program, zone: tzinfo
) -> str:
    """Return the address that a permalink pattern, or its own front matter, gave a post; "" for drafts."""
    if file.fields.get("status") != "published" or "published_at" not in file.fields:
        return ""
    values = file.values
    own, own_slug, date = map(values.get, ("permalink", "slug", "date"))
    above = folder.absolute().parts[len(site.parts) :] if site else ()
    is_jekyll = "_posts" in program.post_folders
    categories = [*above[: above.index("_posts")]] if is_jekyll and "_posts" in above else []
    several = values.get("categories")
    for names in (several.split() if isinstance(several, str) else several, values.get("category")):
        names = names if isinstance(names, list) else [names]
        categories += [each for each in names if isinstance(each, str)]
    moment = datetime_of(date if isinstance(date, str) and date else file.fields["published_at"], zone)
    moment = moment if zone is UTC else moment.astimezone(zone)
    name = own_slug if isinstance(own_slug, str) else name
    styles = STYLES | program.permalink_styles
    return address(str(own) if is_pattern(own) else pattern, moment, name, categories, styles)


def pattern_of(program: Program, values: Mapping[str, Any]) -> str:
    """Return the pattern of the addresses of posts in a site's configuration; "" for a program without one."""
    patterns = [values.get("permalink")] if program.permalink_pattern else []
    if "_posts" in program.post_folders:
        try:
            of_posts = [each["values"] for each in values.get("defaults", ()) if each["scope"].get("type") == "posts"]
            collection = values.get("collections", {})  # or a list of names
            of_posts[:0] = [collection["posts"]] if isinstance(collection, dict) and "posts" in collection else []
            patterns = [each.get("permalink") for each in (*reversed(of_posts), values)]
        except (AttributeError, LookupError, TypeError):
            patterns = []
    return next((str(each) for each in patterns if is_pattern(each)), program.permalink_pattern)
