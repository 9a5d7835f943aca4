"""Infer the title, date, language and slug of an imported post, and its URLs on the old site."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from blogapi.documents import MAX_FORMER_SLUGS, is_slug
from blogapi.markdown.dates import datetime_of, rfc3339_or_empty
from blogapi.markdown.front_matter import shown
from blogapi.markdown.programs import ALIAS_NAMES, PERMALINK_NAMES, STYLES, Program
from blogapi.posts.slugs import slug_of
from blogapi.text import VISIBLE
from blogapi.wings.transfer.items import Failure, Item, Note

DATE_IN_PATH = re.compile(r"(?:^|/)(\d{4}/\d\d/\d\d)(?:/|$)", re.ASCII)
LANGUAGE_CODE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?", re.ASCII)

TAG_IN_NAME = re.compile(r"\[(?!drafts?\])([^\[\]]+)\]", re.IGNORECASE)
TAGS_IN_NAME = re.compile(rf"(?:{TAG_IN_NAME.pattern}[ ]*)+(?=.)", re.IGNORECASE)
MAX_TITLE_TEXT = 2000  # search for a title in at most this many characters
# Parts of a post that cannot be its title: code, HTML, images, imports, block delimiters
NOT_TITLE = re.compile(
    r"^(```|~~~)(?s:.*?)(?:^\1|\Z)|<[^<>]*>|!\[[^\]]{0,300}\]\([^)]{0,300}\)"
    r"|^(?:import|export) .*$|^:::.*$|^ {0,3}(?:[-*_] *){3,}$",
    re.MULTILINE,
)
ANY_HEADING = re.compile(
    r"^ {0,3}(?:#{1,6}[ \t]+(\S(?:.{0,300}?\S)?)[ \t#]*|(\S.{0,300})\n {0,3}=+[ \t]*)$", re.MULTILINE
)
CHECKLIST = re.compile(r"\s*[-*+] \[[ xX]\]")
MARKUP = re.compile(r"\[([^\]]{0,300})\]\([^)]{0,300}\)|^\s*(?:[-+*] |[>#]+)|[*`]|\b_|_\b", re.MULTILINE)
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s|(?<=[。！？])")

DRAFT_FOLDERS = {"_drafts", "drafts", "draft", "_draft", "private", "_private", "unpublished", "hidden"}


def name_and_date(path: Path, folders: tuple[str, ...], url: str, program: Program, zone: tzinfo) -> tuple[str, str]:
    """Return the name of a file without a leading date, and the date (midnight) in its path or URL, or ""."""
    stem, dot, language = path.stem.partition(".")
    is_index = stem in program.index_names  # An `index.md` is named after its folder.
    name = (path.parent.name or stem) + (dot + language).replace(".", "-") if is_index else path.stem
    name = program.not_in_names.sub("", name) or name
    above = folders[:-1] if is_index else folders
    for text in dict.fromkeys((name, "/".join((*above, name)))):
        if match := program.date_and_name.fullmatch(text):
            year, month, number, rest = filter(None, match.groups())
            if day := rfc3339_or_empty(f"{year}-{month}-{number}", zone):
                return rest, day
    in_url = DATE_IN_PATH.search(url)
    return name, rfc3339_or_empty(in_url[1], zone) if in_url else ""


def language_of(path: Path, values: Mapping[str, Any]) -> str:
    """Return the language of a translation, from its file name or front matter."""
    candidates = (path.stem.partition(".")[2], *map(values.get, ("lang", "language", "locale")))
    return next((text for text in candidates if isinstance(text, str) and LANGUAGE_CODE.fullmatch(text)), "")


def title_of(text: str, name: str) -> tuple[str, Note]:
    """Make a title from a post's content or, failing that, its name. Return it, and a note that says which was used."""
    title = title_from_text(text)
    return (title, Note.TITLES) if title else (title_from_name(name), Note.TITLES_FROM_NAMES)


def title_from_name(name: str) -> str:
    """Make a title from a file name. A date, or a name with spaces (Obsidian), is used unchanged."""
    if any(map(str.isspace, name)) or rfc3339_or_empty(name):
        return name
    words = re.sub("[-_]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def title_from_text(content: str) -> str:
    """Return the first heading in a post, or up to 60 characters of its first sentence, or "" for a checklist."""
    text = NOT_TITLE.sub("", content[:MAX_TITLE_TEXT])
    if heading := ANY_HEADING.search(text):
        return heading[1] or heading[2].strip()
    if CHECKLIST.match(text):
        return ""
    sentence = SENTENCE_END.split(" ".join(MARKUP.sub(r"\1", text).split()), maxsplit=1)[0]
    short = sentence if len(sentence) <= 60 else sentence[:61].rpartition(" ")[0] or sentence[:60]
    return short.rstrip(" .,;:") if VISIBLE.search(short) else ""


def infer(item: Item, path: Path, folders: tuple[str, ...], top: str, url: str, publish: bool) -> str:
    """Infer the fields missing from front matter. Return the file name without a leading date.

    `top` is the name of the imported folder. A date publishes a post without a status only if `publish` is true.
    """
    file, fields, program = item.file, item.fields, item.file.program
    if program.names_have_tags and (match := TAGS_IN_NAME.match(path.stem)):
        fields["tags"] = [*fields.get("tags", ()), *TAG_IN_NAME.findall(match[0])]
        path = path.with_name(path.name[match.end() :])
    name, day = name_and_date(path, folders, url, program, item.zone)
    fields.setdefault("slug", unquote(split_url(url)[1]) or shown(name))
    if not fields.get("title"):
        is_in_name = program.titles_from_names or any(map(str.isspace, name))
        fields["title"], note = title_of("" if is_in_name else fields["content"], shown(name))
        item.notes[note] = None
    if day and not file.is_exported:
        fields.setdefault("published_at", day)
    _add_time(fields, file.others.get("time"), item.zone)
    if DRAFT_FOLDERS & {folder.lower() for folder in (top, *folders)} and not file.is_exported:
        fields.setdefault("status", "draft")
    elif "published_at" in fields and publish:
        fields.setdefault("status", "published")
    elif "published_at" in fields and "status" not in fields:
        item.notes[Note.NOT_PUBLISHED] = None
    return name


def _add_time(fields: dict[str, Any], time: Any, zone: tzinfo) -> None:
    """Add a time of day to a post's date, because PieCrust stores them separately."""
    if isinstance(time, str) and "published_at" in fields:
        local = datetime_of(fields["published_at"]).astimezone(zone)
        if not (local.hour or local.minute or local.second):
            fields["published_at"] = rfc3339_or_empty(f"{local.date()} {time}", zone) or fields["published_at"]


NO_DATE = "~"  # sorts after every time


class SpoolEntry(NamedTuple):
    """The position of an item in the spool, its sort key, and the parts of its slug."""

    offset: int
    when: str = NO_DATE
    number: int = 0
    slug: str = ""  # empty for a Failure
    parents: tuple[str, ...] = ()
    slug_prefix: str = ""
    day: str = ""  # in the site's time zone
    is_given: bool = False  # whether the slug is in front matter

    @classmethod
    def of(cls, item: Item, offset: int = 0) -> "SpoolEntry":
        when = item.created_at or item.fields.get("published_at", NO_DATE)
        slug, is_given = valid_slug(item.fields["slug"]), "slug" in item.file.sources
        day = when if when == NO_DATE else datetime_of(when, UTC).astimezone(item.zone).date().isoformat()
        return cls(offset, when, item.file.number, slug, item.parents, item.slug_prefix, day, is_given)


def with_distinct_slugs(entries: list[SpoolEntry]) -> list[SpoolEntry]:
    """Give posts that share a slug more and more specific ones (`possible_slugs`), until all differ or none are left.

    Posts that still share a slug at the end keep their original slugs. A slug that is in the front matter of only one
    post does not change.
    """
    claims = Counter(entry.slug for entry in entries if entry.is_given)
    fixed = [
        not entry.slug or (entry.is_given and not entry.slug_prefix and claims[entry.slug] == 1) for entry in entries
    ]
    slugs = [entry.slug for entry in entries]
    for step in range(1, 3 + 2 * max((len(entry.parents) for entry in entries), default=0)):
        counts = Counter(slugs)
        slugs = [
            slug if is_fixed or counts[slug] == 1 else possible_slugs(entry)[: step + 1][-1]
            for entry, slug, is_fixed in zip(entries, slugs, fixed, strict=True)
        ]
    counts = Counter(slugs)
    return [
        entry if counts[slug] > 1 else entry._replace(slug=slug) for entry, slug in zip(entries, slugs, strict=True)
    ]


def possible_slugs(entry: SpoolEntry) -> list[str]:
    """Return the slug of a post with each prefix to try: none, language, folders, day, and day with folders."""
    above = [entry.parents[-depth:] for depth in range(1, len(entry.parents) + 1)]
    days = [(entry.day, *folders) for folders in ((), *above)] if entry.day not in ("", NO_DATE) else []
    fronts = [(), (entry.slug_prefix,), *above, *days]
    return [valid_slug(" ".join(filter(None, (*front, entry.slug)))) for front in fronts]


def valid_slug(text: str) -> str:
    """Return the string if it is a valid slug, and otherwise a slug made from it."""
    return text if is_slug(text) else slug_of(text)


class TakenUrls:
    """The slugs and old URLs of the imported posts. No two posts share one."""

    def __init__(self, slugs: Iterable[str]):
        self.slugs = {*slugs}
        self.urls = {*self.slugs}
        self.sources: dict[str, str] = {}  # slug -> file name

    def assign(self, item: Item, slug: str) -> Item | Failure:
        """Give an item its final slug, and remove the former slugs and URLs that belong to other posts."""
        fields, notes, old_paths, line_of = item.fields, item.notes, item.old_paths, item.file.line_of
        if slug in self.sources:
            reason = f"{self.sources[slug]} also has the slug {slug}: give one of them another `slug`"
            return Failure(item.source, line_of("slug"), reason)
        self.sources[slug] = item.source
        if slug != fields["slug"]:
            notes[Note.OTHER_SLUGS] = line_of("slug")
            if slug != valid_slug(fields["slug"]):  # changed because other posts have the same slug
                old_paths = (*old_paths, item.own_path or f"/{fields['slug']}")
        if former := dict.fromkeys(fields.get("former_slugs", ())):
            fields["former_slugs"] = [old_slug for old_slug in former if old_slug not in self.slugs][:MAX_FORMER_SLUGS]
            if len(former) > len(fields["former_slugs"]):
                notes[Note.FORMER_SLUGS] = line_of("former_slugs")
        own = tuple(path for path in old_paths if _unquoted(path) == slug or _unquoted(path) not in self.urls)
        if len(own) < len(old_paths):
            notes[Note.SHARED_URLS] = None
        self.urls.update(map(_unquoted, own))
        fields["slug"], item.old_paths = slug, own
        return item


def _unquoted(path: str) -> str:
    return unquote(path, errors="surrogateescape").strip("/")


def read_paths(others: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return a post's current and older paths, from another program's front matter."""
    values = {name.lower(): value for name, value in others.items()}
    paths = [path for name in PERMALINK_NAMES if (path := path_of(values.get(name)))]
    aliases: list[str] = []
    for value in map(values.get, ALIAS_NAMES):
        alias_paths = map(path_of, value if isinstance(value, list) else [value])
        aliases += [path for path in alias_paths if "/" in path]  # Obsidian's aliases are names, not paths.
    return paths, aliases


def split_url(url: str) -> tuple[str, str]:
    """Return the folder and the last segment of a URL, without its extension or `index`."""
    path = re.sub(r"(^|/)index$", "", re.sub(r"\.html?$", "", url)).strip("/")
    folder, _, name = path.rpartition("/")
    return folder, name


def former_slugs(aliases: Iterable[str], urls: Iterable[str]) -> list[str]:
    """Return the slugs in older URLs that differ from a current URL only in the last segment."""
    folders = {split_url(url)[0] for url in urls}
    return [slug for folder, slug in map(split_url, aliases) if folder in folders and is_slug(slug)]


def path_of(value: Any) -> str:
    """Return the path of a URL, or "" for a permalink pattern or a pattern's name."""
    if not isinstance(value, str) or value in (*STYLES, "false", "true", "null", "~") or "{" in value:
        return ""
    path = re.sub(r"^[a-z]+://[^/]*|[?#].*", "", value)
    return "" if re.search("(^|/|-):[a-z]", path) else path


def url_of_file(path: Path, folders: tuple[str, ...]) -> str:
    """Return the URL of a file in these folders of a site. If one of its folders is Hugo's `content`, begin there."""
    parts = path.absolute().parts[:-1]
    if "content" in parts:
        folders = parts[len(parts) - parts[::-1].index("content") :]
    return "/".join(("", *(folder for folder in folders if folder not in ("src", "source")), path.stem))
