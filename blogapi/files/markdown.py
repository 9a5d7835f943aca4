"""A post as a Markdown file: read, written, and exported to a folder of them."""

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple

from blogapi.files.front_matter import MarkdownError, read_toml, read_yaml, rfc3339_of, shortened, split
from blogapi.post import CONTROL, ID, is_slug, is_visible

FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
MAX_FILE_BYTES = 4 * 1024 * 1024  # of a file to import; that of a post is smaller
MAX_KEPT = 1024  # characters of front matter that is remembered, once read
IMAGE_NAMES = ("cover_image", "image", "cover", "featured_image", "feature_image")
# The address of an image that has more properties.
ADDRESS_NAMES = ("url", "src", "image", "path")

# The names that programs have for the address of a post, those of its values that are no path, and for older addresses.
PATH_NAMES = ("permalink", "path", "url")
PATH_STYLES = ("date", "pretty", "ordinal", "weekdate", "none", "false", "true")
ALIAS_NAMES = ("aliases", "alias", "redirect_from")
HEADING = re.compile(r"^ {0,3}#(?:[ \t]+([^\r\n]*)|$)", re.MULTILINE)

# Front matter that is not read: JSON, and the headers of Pelican.
NOT_READ = re.compile(r'\{\s*"|;;;[ \t]*\r?\n|"[\w-]+":(?s:.)*?\n;;;|(?i:title|date): [^\r\n]*\r?\n[\w-]+:[ \t]')

WRITTEN = ("title", "slug", "status", "published_at", "created_at", "tags", "excerpt", "cover_image", "id")
# Words that YAML 1.1 or 1.2 does not take for text.
WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "infinity"}
# Characters that some parser of YAML does not read within quotes.
ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class Document(NamedTuple):
    """A parsed Markdown file."""

    fields: dict[str, Any]  # the fields of a post that it has, with `content`, as in JSON; times are RFC 3339
    created_at: str | None = None  # RFC 3339
    number: int = 0  # the former `id`; 0 if it has none
    unknown: Mapping[str, Any] = {}  # the values of other names: texts, and lists and mappings of them
    sources: Mapping[str, str] = {}  # the name that stands for each field
    lines: Mapping[str, int] = {}  # the lines of all names
    content_line: int = 0  # the line in which the content begins; 0 if it is not in a file of its own

    def line_of(self, field: str) -> int | None:
        """Return the line of a field, if it is known; of the content, that of its first control character."""
        if field != "content" or not self.content_line:
            return self.lines.get(self.sources.get(field, field))
        content = self.fields["content"]
        control = CONTROL.search(content)
        return control and self.content_line + content.count("\n", 0, control.start())

    @property
    def is_exported(self) -> bool:
        """Whether it has all names that `render` always writes: then nothing is inferred from its name."""
        return all(name in self.lines for name in ("id", "created_at", "title", "slug"))


def parse(data: bytes, *, strict: bool = False) -> Document:
    """Read a Markdown file. Raise MarkdownError; if it is `strict`, for an unknown name, too.

    Otherwise the first of several images counts, and front matter of other forms is refused.
    """
    marks, text, content, line = split(data)
    if not marks and not strict and NOT_READ.match(content):
        raise MarkdownError("front matter must be YAML between lines of ---, or TOML between lines of +++", 1)
    document = (_read if len(text) <= MAX_KEPT else _read.__wrapped__)(marks, text, strict)
    for name in document.unknown if strict else ():
        known = f"{', '.join(NAMES)}, and `id` and `created_at`, which are ignored"
        raise MarkdownError(f"{shortened(name)} is unknown; there are {known}", document.lines[name])
    fields = {**document.fields, "content": content}
    if "title" not in fields and (title := _heading(content)):
        fields["title"] = title
    return document._replace(fields=fields, content_line=line)


@lru_cache(maxsize=512)  # A folder that is kept in sync sends the same files again and again.
def _read(marks: bytes, text: str, strict: bool) -> Document:
    values, lines = read_toml(text) if marks == b"+++" else read_yaml(text)
    if not strict:
        values, lines = _adapted(values, lines)
    fields: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name in [name for name in KNOWN if name in values and not (strict and name in IGNORED)]:
        field, value = _field(name, values[name], lines[name])
        if not value:
            continue
        source = sources.setdefault(field, name)
        if field == "tags":
            fields[field] = fields.get(field, []) + value
        elif fields.setdefault(field, value) != value:
            if strict or field not in ("excerpt", "cover_image"):
                raise MarkdownError(f"`{name}` and `{source}` say different things", lines[name])
            values[f"{name} (not the {source})"] = value
    number = re.fullmatch(ID, str(values.get("id", "")))
    unknown = {name: value for name, value in values.items() if name not in (*KNOWN, *IGNORED)}
    created_at = fields.pop("created_at", None)
    return Document(fields, created_at, int(number[0]) if number else 0, unknown, sources, lines)


def _adapted(values: dict[str, Any], lines: dict[str, int]) -> tuple[dict[str, Any], dict[str, int]]:
    """Return front matter of other programs as ours: Hugo's names have no case, and Zola groups tags."""
    if isinstance(groups := values.get("taxonomies"), dict):
        lines = dict.fromkeys(groups, lines["taxonomies"]) | lines
        values = groups | {name: value for name, value in values.items() if name != "taxonomies"}
    names = {name: LOWER.get(name.lower(), name) for name in values}
    values = {names[name]: value for name, value in values.items()}
    for name in [name for name in IMAGE_NAMES if isinstance(values.get(name), list)]:
        first, *others = values[name] or [""]
        values |= {name: first} | ({f"further {name}": others} if others else {})
    return values, {names[name]: lines[name] for name in names}


def _field(name: str, value: Any, line: int) -> tuple[str, Any]:
    """Return the field that a name stands for, and its value."""
    is_day = name == "published" and isinstance(value, str) and value[:1].isdigit()
    field, convert = KNOWN["published_at" if is_day else name]
    try:
        return field, convert(value)
    except ValueError as error:
        raise MarkdownError(f"`{name}` {error}", line) from None


def read_other_names(unknown: Mapping[str, Any]) -> tuple[list[str], list[str], tuple[str, ...]]:
    """Read the paths and older paths that other programs write; return them, and the names that are left."""
    values = {name.lower(): value for name, value in unknown.items()}
    paths = [path for name in PATH_NAMES if (path := path_of(values.get(name)))]
    aliases: dict[str, list[str]] = {}
    for name in ALIAS_NAMES:
        found = values.get(name) if isinstance(values.get(name), list) else [values.get(name)]
        aliases[name] = [path for value in found if "/" in (path := path_of(value))]  # Those of Obsidian are names.
    left = tuple(name for name in unknown if name.lower() not in PATH_NAMES and not aliases.get(name.lower()))
    return paths, [path for found in aliases.values() for path in found], left


def path_of(value: Any) -> str:
    """Return the path of an address; nothing if it is a pattern or the name of a style."""
    if not isinstance(value, str) or value in PATH_STYLES or "{" in value:
        return ""
    path = re.sub(r"^[a-z]+://[^/]*|[?#].*", "", value)
    return "" if re.search("(^|/|-):[a-z]", path) else path


def render(post: Mapping[str, Any]) -> bytes:
    """Write a post as a Markdown file; reading it gives the same post."""
    values = {name: post[name] for name in WRITTEN if post.get(name)}
    lines = [f"{name}: {value if name.endswith('_at') else _written(value)}\n" for name, value in values.items()]
    return f"---\n{''.join(lines)}---\n\n{post['content']}".encode()


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a single text")
    return value


def _time(value: Any) -> str:
    return rfc3339_of(text) if (text := _text(value)) else ""


def _tags(value: Any) -> list[str]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("must be a list of texts, or one text with commas")
    return [name.strip() if isinstance(value, str) else name for name in names if name.strip()]


def _address(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[name] for name in ADDRESS_NAMES if name in value), None)
        if value is None:
            raise ValueError("must be a URL, or have a `url` or `src`")
    return _text(value)


def _status(if_true: str, if_false: str, value: Any) -> str:
    if value == "":
        return ""
    if not isinstance(value, str) or value.lower() not in FLAGS:
        raise ValueError("must be true or false")
    return if_true if FLAGS[value.lower()] else if_false


# The field that a name stands for, and the function that reads its value. A field's own name comes first.
KNOWN: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{name: (name, _text) for name in ("title", "slug", "status")},
    "draft": ("status", partial(_status, "draft", "published")),
    "published": ("status", partial(_status, "published", "draft")),
    **dict.fromkeys(("tags", "categories", "category"), ("tags", _tags)),
    **dict.fromkeys(("excerpt", "description", "summary"), ("excerpt", _text)),
    **dict.fromkeys(IMAGE_NAMES, ("cover_image", _address)),
    **dict.fromkeys(("published_at", "date", "publishDate", "pubDate"), ("published_at", _time)),
    "created_at": ("created_at", _time),
}
IGNORED = ("id", "created_at")  # in a request
NAMES = tuple(dict.fromkeys(field for field, _ in KNOWN.values() if field not in IGNORED))
LOWER = {name.lower(): name for name in (*KNOWN, *IGNORED)}


def _heading(content: str) -> str:
    """Return the text of the ATX heading of level 1 (CommonMark, 4.2) with which the content begins, if any."""
    heading = HEADING.search(content)
    if not heading or any(map(is_visible, set(content[: heading.start()]))):
        return ""
    text = (heading[1] or "").rstrip(" \t")
    opened = text.rstrip("#")  # a closing sequence
    return opened.strip(" \t") if opened[-1:] in ("", " ", "\t") else text


def _written(value: str | list[str], also_special: str = "") -> str:
    """Write a text plainly if every YAML parser reads the same text, else in double quotes."""
    if isinstance(value, list):
        return f"[{', '.join(_written(text, ',[]{}:?') for text in value)}]"
    is_text = value[0].isalpha() and value.isprintable() and value.lower() not in WORDS
    if is_text and value[-1] not in " :" and not any(map(value.__contains__, (": ", " #", *also_special))):
        return value
    return ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


def export(posts: Iterable[Mapping[str, Any]], folder: Path, *, delete: bool = False) -> dict[Path, str]:
    """Write each post to SLUG.md in a folder, which is created if it is missing. Raise OSError if it cannot be.

    Return whether each file was written, unchanged, deleted or kept, or why it could not be. With `delete`, remove the
    files of posts that are gone: regular files SLUG.md whose front matter has that slug and all that an export writes.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"cannot create the folder {folder}: {error.strerror}") from error
    results = {(path := folder / f"{post['slug']}.md"): _attempt("write", _write, path, post) for post in posts}
    if delete:
        left = [path for path in sorted(folder.iterdir()) if path not in results]
        results |= {path: _attempt("remove", _remove, path) for path in left}
    return results


def _attempt(verb: str, function: Callable[..., str], path: Path, *arguments: Any) -> str:
    try:
        return function(path, *arguments)
    except OSError as error:
        return f"cannot {verb} {path}: {error.strerror}"


def _write(path: Path, post: Mapping[str, Any]) -> str:
    """Replace a file atomically, unless it is a regular one with the same bytes. A link is not followed."""
    data = render(post)
    with suppress(OSError):
        state = path.lstat()
        if S_ISREG(state.st_mode) and state.st_size == len(data) and path.read_bytes() == data:
            return "unchanged"
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)  # of an export that was killed
    seconds = datetime.fromisoformat(post.get("published_at") or post["created_at"]).timestamp()
    try:
        with part.open("xb") as file:
            file.write(data)
        os.utime(part, (seconds, seconds))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return "written"


def _remove(path: Path) -> str:
    """Remove an exported file; keep any other."""
    slug, state = path.name.removesuffix(".md"), path.lstat()
    if path.suffix == ".md" and is_slug(slug) and S_ISREG(state.st_mode) and state.st_size <= MAX_FILE_BYTES:
        with suppress(MarkdownError):
            document = parse(path.read_bytes())
            if document.is_exported and document.fields.get("slug") == slug:
                path.unlink()
                return "deleted"
    return "kept"
