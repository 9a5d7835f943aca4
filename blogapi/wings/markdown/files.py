"""Read and write a post as a Markdown file."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from functools import lru_cache, partial
from typing import Any, NamedTuple

from blogapi.documents import ID
from blogapi.text import CONTROL, VISIBLE
from blogapi.wings.markdown.front_matter import MarkdownError, read_toml, read_yaml, rfc3339_of, shortened, split, typed
from blogapi.wings.markdown.public import hides

FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
MAX_FILE_BYTES = 4 * 1024 * 1024  # limit for an imported file; exported files are smaller
CACHED_CHARACTERS = 1024  # longer front matter is not cached
HERO = "heroImage"  # the cover in Astro's starter
ASTRO_NAMES = {"pubdatetime": "pubDate", "postslug": "slug"}  # names in Astro's themes, and ours
# Other programs' words for a status, and ours
STATUS_WORDS = {"publish": "published", "future": "scheduled", "pending": "draft", "private": "draft", "trash": "trash"}
LANGUAGE = re.compile(rb"---(\w+)[ \t]*(?=\r?\n)")  # of front matter
IMAGE_NAMES = ("cover_image", "image", "cover", "featured_image", "feature_image")
# Names for the address of an image with more properties
ADDRESS_NAMES = ("url", "src", "image", "path")
TAG_NAMES = ("tags", "tag", "categories", "category")
HEADING = re.compile(r"^ {0,3}#(?:[ \t]+([^\r\n]*)|$)", re.MULTILINE)

DELIMITED = "front matter must be YAML or JSON between lines of ---, or TOML between lines of +++"
# Front matter that is not read: JSON without delimiters, the headers of Pelican and Nikola, and scripts
NOT_READ = {
    re.compile(
        r'\{\s*"|;;;[ \t]*\r?\n|"[\w-]+":(?s:.)*?\n;;;|(?i:title|date): [^\r\n]*\r?\n[\w-]+:[ \t]|\.\. title:'
        r"|(?=(?:[^\r\n]+\r?\n){0,20}?(?i:status|draft|published|password):[ \t])(?:\w[\w -]*+:[ \t][^\r\n]*\r?\n){2}"
    ): DELIMITED,
    re.compile(
        r"(?:```|~~~|---|###)[ \t]*(?:ruby[ \t]*\r?\n\s*front_matter|<%)"
    ): "front matter in Ruby cannot be read: write it as YAML between lines of ---",
    re.compile(
        r"(?:\s*import [^\r\n]*\r?\n)*\s*export (?:const|let|default) (?:(?:meta|front)\w* *= *)?\{"
    ): "metadata in JavaScript cannot be read: write it as YAML between lines of ---",
}

PLAIN = ("published_at", "created_at", "date", "lastmod", "draft", "permalink")  # written without quotes
CHANGED, UNPUBLISHED = "lastmod", "permalink"  # a flat file adds these before `created_at`, for Hugo and Eleventy
# Names in the order in which they are written
WRITTEN = (
    *("title", "slug", "former_slugs", "status", "published_at", "created_at", "tags", "excerpt", "cover_image"),
    *("params", "id"),
)
EXPORTED = {"id", "created_at", "title", "slug"}  # names in every file that `render` wrote
# Words that are not text in YAML 1.1 or 1.2
WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "infinity"}
# Characters that some YAML parsers refuse inside quotes
ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
EXPONENT = re.compile("^(-?[0-9]+)(e)")  # without a point, YAML 1.1 reads such a number as text


class MarkdownFile(NamedTuple):
    """A parsed Markdown file."""

    fields: dict[str, Any]  # fields of a post, `content` included, as in JSON; times are RFC 3339
    created_at: str | None = None  # RFC 3339
    number: int = 0  # the `id` in the service that exported it; 0: none
    others: Mapping[str, Any] = {}  # values of other names, as written; `fields` contains them in `params`
    values: Mapping[str, Any] = {}  # values of all names, as written
    sources: Mapping[str, str] = {}  # the name in the file for each field
    lines: Mapping[str, int] = {}  # the line of each name
    content_line: int = 0  # the line where the content begins; 0 if the post has no file of its own
    is_exported: bool = False  # whether it contains all of EXPORTED; then nothing is inferred from its name

    def line_of(self, field: str) -> int | None:
        """Return the line of a field if it is known. For the content, it is that of the first control character."""
        field, _, place = field.partition(".")
        field = max(filter(place.startswith, self.others), key=len, default=field) if place else field.partition("[")[0]
        if field != "content" or not self.content_line:
            return self.lines.get(self.sources.get(field, field))
        content = self.fields["content"]
        control = CONTROL.search(content)
        return control and self.content_line + content.count("\n", 0, control.start())


class Rules(NamedTuple):
    """How front matter is read; the names are those of the arguments of `parse`."""

    strict: bool
    keeps_others: bool
    divides_tags: bool
    zone: tzinfo


def parse(
    data: bytes,
    *,
    strict: bool = False,
    keeps_others: bool = False,
    divides_tags: bool = False,
    zone: tzinfo = UTC,
) -> MarkdownFile:
    """Read a Markdown file. Raises MarkdownError.

    If `strict`, it must be written for this service: an unknown name is an error unless `keeps_others` puts it into
    `params`. Otherwise it may come from another program: unknown names go to `params`, white space may come first, of
    several images or excerpts the first counts, and other forms of front matter are errors. `divides_tags` splits tags
    in one string without a comma at white space, as Jekyll does. Times without an offset are in the `zone`.
    """
    language = None if strict else LANGUAGE.match(data)
    if language:
        if language[1] not in (b"json", b"toml", b"yaml", b"yml"):  # JSON is read as YAML.
            name = "JavaScript" if language[1].startswith(b"j") else shortened(language[1].decode(errors="replace"))
            raise MarkdownError(f"front matter in {name} cannot be read: write it as YAML", 1)
        data = b"---" + data[language.end() :]
    marks, text, content, line = split(data, skip_blank=not strict)
    if language and language[1] == b"toml":
        marks = b"+++"
    if not marks and not strict and (reason := next((NOT_READ[each] for each in NOT_READ if each.match(content)), "")):
        raise MarkdownError(reason, 1)
    read = _read if len(text) <= CACHED_CHARACTERS else _read.__wrapped__
    file = read(marks, text, Rules(strict, keeps_others or not strict, divides_tags, zone))
    fields = {**file.fields, "content": content}
    if "title" not in fields and (title := heading(content)):
        fields["title"] = title
    return file._replace(fields=fields, content_line=line)


@lru_cache(maxsize=512)  # A synced folder sends the same files again and again.
def _read(marks: bytes, text: str, rules: Rules) -> MarkdownFile:
    values, lines = read_toml(text) if marks == b"+++" else read_yaml(text)
    if not rules.strict:
        values, lines = _adapted(values, lines)
    is_exported = lines.keys() >= EXPORTED
    if is_exported and not rules.strict and ("status" not in values or "draft" in values):  # It is flat.
        head = {*[*values][: [*values].index("created_at")]} & {CHANGED, UNPUBLISHED}
        values = {name: value for name, value in values.items() if name not in head}
    known = FIELD_READERS.keys() - IMPORTED if rules.strict else FIELD_READERS.keys()
    others = {name: value for name, value in values.items() if name not in (*known, *IGNORED)}
    if others and not rules.keeps_others:
        name = next(iter(others))
        names = f"{', '.join(FIELD_NAMES)}, and `id` and `created_at`, which are ignored"
        ways_out = "put it into `params`, or add ?unknown=params to the address"
        raise MarkdownError(f"{shortened(name)} is unknown: {ways_out}; known: {names}", lines[name])
    fields, sources = _read_fields(values, lines, others, rules)
    if rules.keeps_others and (params := typed(others) | fields.get("params", {})):
        for name in others.keys() & fields.get("params", {}).keys():
            raise MarkdownError(f"{shortened(name)} is in `params`, too", lines[name])
        fields["params"] = params
    number = re.fullmatch(ID, str(values.get("id", "")))
    created_at, own_id = fields.pop("created_at", None), int(number[0]) if number else 0
    return MarkdownFile(fields, created_at, own_id, others, values, sources, lines, is_exported=is_exported)


def _read_fields(
    values: dict[str, Any], lines: dict[str, int], others: dict[str, Any], rules: Rules
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields in front matter, and the name in the file for each; other values go to `others`."""
    fields: dict[str, Any] = {}
    sources: dict[str, str] = {}
    left_out = (*IGNORED, *IMPORTED) if rules.strict else ()
    for name in [name for name in FIELD_READERS if name in values and name not in left_out]:
        field, value = _read_field(name, values[name], lines[name], rules)
        size = len(values[name]) if name in IMAGE_NAMES and isinstance(values[name], dict | list) else 0
        if size > 1 or (size and not value and not rules.strict):
            others[name] = values[name]  # The field keeps only the address.
        if not value and name != "former_slugs":  # An empty list gives them up.
            continue
        source = sources.setdefault(field, name)
        if field == "tags":
            fields[field] = fields.get(field, []) + value
        elif fields.setdefault(field, value) != value:
            if rules.strict:
                raise MarkdownError(f"`{name}` and `{source}` say different things", lines[name])
            if field == "status" and value == "draft" and fields[field] == "published":
                fields[field], sources[field], name = value, name, source
            if field != "status" or name == "status":
                others[name] = values[name]
    return fields, sources


def _adapted(values: dict[str, Any], lines: dict[str, int]) -> tuple[dict[str, Any], dict[str, int]]:
    """Translate front matter of other programs: Hugo ignores case, Zola groups tags, Astro has hero images."""
    if isinstance(groups := values.get("taxonomies"), dict):
        ours = {name: value for name, value in groups.items() if name.lower() in BY_LOWER_CASE}
        left = {name: value for name, value in groups.items() if name not in ours}
        lines = dict.fromkeys(ours, lines["taxonomies"]) | lines
        values = ours | {name: value for name, value in values.items() if name != "taxonomies"}
        values |= {"taxonomies": left} if left else {}
    names = {name: BY_LOWER_CASE.get(name.lower(), name) for name in values}
    names |= {
        name: known for name in values if (known := ASTRO_NAMES.get(name.lower())) and known not in names.values()
    }
    values = {names[name]: value for name, value in values.items()}
    lines = {names[name]: lines[name] for name in names}
    if HERO in values and not values.keys() & set(IMAGE_NAMES):
        values, lines = {"cover_image": values[HERO]} | values, {"cover_image": lines[HERO]} | lines
    return values, lines


def _read_field(name: str, value: Any, line: int, rules: Rules) -> tuple[str, Any]:
    """Return the field for a name, and its value."""
    is_day = name == "published" and isinstance(value, str) and value[:1].isdigit()
    field, convert = FIELD_READERS["published_at" if is_day else name]
    if not rules.strict and name == "status" and isinstance(value, str):
        value = STATUS_WORDS.get(value.lower(), value)
    if not rules.strict and name in IMAGE_NAMES:
        value = next(iter(value), "") if isinstance(value, list) else value
        value = "" if isinstance(value, dict) and not value.keys() & set(ADDRESS_NAMES) else value
    try:
        found = _time(value, rules.zone) if convert is _time else convert(value)
    except ValueError as error:
        raise MarkdownError(f"`{name}` {error}", line) from None
    if rules.divides_tags and name in ("tags", "categories") and isinstance(value, str) and len(found) == 1:
        found = found[0].split()
    return field, found


def _is_read(name: str, post: Mapping[str, Any]) -> bool:
    """Return whether a name at the top level would be read as a field of the post, or make a draft of it."""
    is_hiding = post["status"] in ("published", "scheduled") and hides(name, post["params"][name])
    return is_hiding or name.lower() in BY_LOWER_CASE | ASTRO_NAMES or (name == HERO and "cover_image" not in post)


def render(post: Mapping[str, Any], *, flat: bool = False) -> bytes:
    """Write a post as a Markdown file; reading it gives the same post.

    `flat` writes it for other programs: with their names for status and date, and with the names in `params` at the top
    level, except those that would mean something else there.
    """
    values = {name: post[name] for name in WRITTEN if post.get(name)}
    params = values.get("params", {})
    at_top = {name: value for name, value in params.items() if flat and not _is_read(name, post)}
    if UNPUBLISHED in at_top and post["status"] != "published":
        at_top = dict([*at_top.items()][: [*at_top].index(UNPUBLISHED)])
    if at_top:
        values["params"] = {name: value for name, value in params.items() if name not in at_top}
    lines = []
    for name, value in (_for_others(values, post) if flat else values).items():
        if name == "params":
            lines += [block(at_top), block({name: value}) if value else ""]
        else:
            lines.append(f"{name}: {value if name in PLAIN else _written(value)}\n")
    return f"---\n{''.join(lines)}---\n\n{post['content']}".encode()


def _for_others(values: dict[str, Any], post: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values at the top of a flat file; they keep Hugo and Eleventy, not Jekyll, from building drafts."""
    status, params = values["status"], {name.lower() for name in post.get("params", {})}
    ours = {name: value for name, value in values.items() if name not in ("status", "published_at")}
    top: dict[str, Any] = {"title": values["title"], "slug": values["slug"]}
    if status != "published":
        top |= {"draft": "true", UNPUBLISHED: "false"}
    top |= {"status": status} if status in ("scheduled", "archived") else {}
    top |= {"date": values["published_at"]} if "published_at" in values else {}
    top |= {} if CHANGED in params else {CHANGED: post.get("updated_at")}
    return {name: value for name, value in (top | ours).items() if value or name == "params"}


def block(values: Mapping[str, Any], indent: str = "") -> str:
    """Write values as block YAML that parsers of YAML 1.1 and 1.2 read the same."""
    return "".join(_entry(f"{indent}{_written(name)}:", value, indent) for name, value in values.items())


def read_block(text: str) -> dict[str, Any]:
    """Read what `block` writes. Raises MarkdownError, with the line in the text."""
    try:
        return typed(read_yaml(text)[0])
    except MarkdownError as error:
        # The line number counts an opening delimiter.
        raise MarkdownError(error.reason, error.line and max(1, error.line - 1)) from None


def _entry(start: str, value: Any, indent: str) -> str:
    if isinstance(value, dict) and value:
        return f"{start}\n{block(value, f'{indent}  ')}"
    if isinstance(value, list) and value:
        return f"{start}\n" + "".join(_entry(f"{indent}  -", each, f"{indent}  ") for each in value)
    if isinstance(value, str):
        return f"{start} {_written(value)}\n"
    number = EXPONENT.sub(r"\1.0\2", json.dumps(value))
    return f"{start} {number}\n"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a single text")
    return str(value)


def _time(value: Any, zone: tzinfo = UTC) -> str:
    return rfc3339_of(text, zone) if (text := _text(value)) else ""


def _tags(value: Any) -> list[str]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("must be a list of texts, or one text with commas")
    return [name.strip() if isinstance(value, str) else str(name) for name in names if name.strip()]


def _address(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[name] for name in ADDRESS_NAMES if name in value), None)
        if value is None:
            raise ValueError("must be a URL, or have a `url` or `src`")
    return _text(value)


def _params(value: Any) -> dict[str, Any]:
    value = typed(value)
    if not isinstance(value, dict) and value not in (None, ""):
        raise ValueError("must be names with values")
    return value or {}


def _status(if_true: str, if_false: str, value: Any) -> str:
    if value == "":
        return ""
    if not isinstance(value, str) or value.lower() not in FLAGS:
        raise ValueError("must be true or false")
    return if_true if FLAGS[value.lower()] else if_false


# The field for each name, and the function that reads its value. A field's own name comes first.
FIELD_READERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{name: (name, _text) for name in ("title", "slug", "status")},
    "draft": ("status", partial(_status, "draft", "published")),
    "published": ("status", partial(_status, "published", "draft")),
    **dict.fromkeys(TAG_NAMES, ("tags", _tags)),
    "former_slugs": ("former_slugs", _tags),
    **dict.fromkeys(("excerpt", "description", "summary"), ("excerpt", _text)),
    **dict.fromkeys(IMAGE_NAMES, ("cover_image", _address)),
    **dict.fromkeys(("published_at", "publishDate", "pubDate", "date"), ("published_at", _time)),
    "created_at": ("created_at", _time),
    "params": ("params", _params),
}
IGNORED = ("id", "created_at")  # in a request
IMPORTED = ("tag",)  # known in an import only
FIELD_NAMES = tuple(dict.fromkeys(field for field, _ in FIELD_READERS.values() if field not in IGNORED))
# Names with a meaning at the top level, by their lower case
BY_LOWER_CASE = {name.lower(): name for name in (*FIELD_READERS, *IGNORED, "taxonomies")}


def heading(content: str) -> str:
    """Return the text of the ATX heading of level 1 (CommonMark, 4.2) at the beginning of the content, if any."""
    found = HEADING.search(content)
    if not found or VISIBLE.search(content[: found.start()]):
        return ""
    text = (found[1] or "").rstrip(" \t")
    opened = text.rstrip("#")  # a closing sequence
    return opened.strip(" \t") if opened[-1:] in ("", " ", "\t") else text


def _written(value: str | list[str], also_special: str = "") -> str:
    """Write a string plainly if every YAML parser reads it as the same string, else in double quotes."""
    if isinstance(value, list):
        return f"[{', '.join(_written(text, ',[]{}:?') for text in value)}]"
    is_text = value[:1].isalpha() and value.isprintable() and value.lower() not in WORDS
    if is_text and value[-1] not in " :" and not any(map(value.__contains__, (": ", " #", *also_special))):
        return value
    return ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))
