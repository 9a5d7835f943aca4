"""Decide whether a post from any program was public, and find passwords in its values.

One list of names serves all programs. A post is hidden if any of these names, at any depth, has a value that is not
known to mean public. If a name is misunderstood, a public post can therefore become a draft, which the report lists,
but a hidden post never becomes public.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from blogapi.clock import LATEST, rfc3339
from blogapi.documents import MAX_PARAM_NAME, filtered
from blogapi.markdown.dates import looks_like_date, rfc3339_or_empty
from blogapi.markdown.front_matter import shown
from blogapi.markdown.programs import NAMES_OF_FIELDS

EMPTY = {"", "null", "~"}
ON = {"true", "yes", "on", "1", "y"}
OFF = {"false", "no", "off", "0", "n", "never", "none"}
PUBLIC = ON | {"public", "publish", "published", "visible", "listed", "live", "open", "default", "featured", "always"}
PUBLIC |= {"everyone", "everybody", "anyone", "all", "world", "scheduled", "future", "archived"}
PASSWORD = re.compile(".*pass(word|wd|phrase|code|key).*|pass|pwd|pw|encrypt(ed|ion)?(key)?|cipher(text)?")
MAY_BE_PASSWORD = {"secret", "protect", "protected", "private", "lock"}  # unless the value is a word from this module
# Parts of names and values that hide a post
HIDING = re.compile(
    "draft|priv(at|ad|é)|hid(e|den|ing)|unlist|delist|unpublish(ed|$)|secret|confidential|protect|restrict|embargo"
    "|unfinished|inprogress|pending|deleted|trash|inactive|disabled|headless|exclude|members?(only|$)|subscriber"
    "|premium|paywall|paid|mailonly|newsletteronly|onlyfree|login|membersaccess|subscriptionlevel"
    "|^((is)?(wip|removed|internal|sent|todo)|(ignored?|skip)(post|page)?|lock(ed)?|(requires?)?auth(entication|required)?)$"
    "|entwurf|brouillon|borrador|bozza|rascunho|szkic|черновик|下書き|草稿"
)
# Parts of names that hide only a part of a page, such as `hide_title` and `cover.hidden`
PART_OF_PAGE = re.compile(
    "toc|title|cover|image|thumb|author|comment|sidebar|nav|footer|header|breadcrumb|date|time|shar|related|ads?$"
    "|summary|excerpt|tags?$|categor|licen[cs]e|copyright|reading|toolbar|banner|hero|avatar|social|pagination|subscribe$"
    "|newsletter$|menu|heading|caption|byline|description|reaction|hashnode|message|notes?$|button|logo|widget|search|meta"
)
# Prefixes that do not change the meaning of a name: mappings such as `params`, and words such as `is`
NEUTRAL = re.compile(
    "(params|extra|custom|metadata|meta|frontmatter|data|options|access|post|page|article|entry|content|document"
    "|publish(ing)?(?=st)|publication(?=st)|is|as|dg|do|to)(?=.)"
)
# Names for the publication date. A future date under any of them hides the post, even if its program uses another name.
PUBLICATION = re.compile(
    "(publish|publication|post(ed|ing)?|release)(date|time)|date(published|publish|posted|released)"
)
# Titles of unfinished posts: `[DRAFT] Rye`, `WIP: Rye`, `Rye (draft)`
DRAFT_TITLE = re.compile(
    r"\s*([\[({<](draft|wip|private|unlisted|hidden)[\])}>].*|(draft|wip) ?:.*|.*[\[(](draft|wip)[\])]\s*)", re.DOTALL
)
HIDING_TAGS = {"draft", "drafts", "private", "unlisted", "hidden"}  # in Nikola and Obsidian
# Reasons that the author of a draft expects. The report omits them.
PLAIN_DRAFTS = {"draft: true", "published: false", "status: draft", "status: pending"}


class Inherited(NamedTuple):
    """Values that a post inherits from a file in its folders or from its site, or a reason to hide the post."""

    source: str  # the name of the file that contains the values
    values: Mapping[str, Any] = {}
    is_default: bool = True  # whether the post's own value takes precedence
    why: str = ""  # the reason to hide the post, such as `exclude in _config.yml`


def _hides(value: str, now: str) -> bool:
    return value not in OFF and not PART_OF_PAGE.search(value)


def _says_hidden(value: str, now: str) -> bool:
    return value in OFF or (bool(HIDING.search(_plain(value))) and not PART_OF_PAGE.search(value))


def _is_over(value: str, now: str) -> bool:
    if re.fullmatch(r"\d{10}(\d{3})?", value, re.ASCII):  # Unix time in seconds or milliseconds
        return rfc3339(int(value[:10])) <= now
    return value not in OFF and rfc3339_or_empty(value) <= now  # A time that cannot be parsed counts as past.


def _is_future(value: str, now: str) -> bool:
    if now == LATEST:
        return bool(rfc3339_or_empty(value))
    return rfc3339_or_empty(value) > now or (looks_like_date(value) and not rfc3339_or_empty(value))


# Tests of a value at the current time. Each applies to the names that match its pattern (in lower-case letters and
# digits only). `_hides` also applies to names that match HIDING. A post is hidden if any test is true.
NAMES: dict[Callable[[str, str], bool], str] = {
    _hides: PASSWORD.pattern,
    # A date does not hide a post.
    lambda value, now: value not in PUBLIC and not re.match("[1-9]", value): (
        "publish(ed|able)?|public|status|visibility|privacy|accessroles?|.*acl|permissions?|access|groups?|roles?|viewers"
        "|readers|(who)?can(view|read|see)|(allowed|restrictedto|visibleto|only)(users?|groups?|roles?)"
        "|build(render|list)"  # Hugo
    ),
    lambda value, now: bool(DRAFT_TITLE.fullmatch(value)): "title",
    _says_hidden: (
        "visible|active|listed|list|render|output|enabled?|live|online|show|display|ready|approved|released|routable"
        "|show(in|on).*|state|stage|phase|type|kind|audience|jetpacknewsletteraccess"
    ),
    # In Jekyll, `permalink: none` chooses a style, and `layout: none` means that the post has no layout.
    lambda value, now: value != "none" and _says_hidden(value, now): "permalink|layout",
    _is_over: "(?!no|never).*expir.*|unpublish.+|publish(until|end|down)|(valid|visible)(until|to)",
    _is_future: (
        "publish(on|from|after|up|at)|(available|visible)(from|on|after)|release(d)?(on|at|date)?|notbefore"
        "|schedul(ed?|ing)(at|for|on|date)?|golive(at|on|date)?"
    ),
}


def why_hidden(values: Mapping[str, Any], inherited: Iterable[Inherited], now: str) -> str:
    """Return the reason to hide a post, such as `draft: true in posts.json`, or "" if it may be published.

    `values` come from the post's file or, in an export, from the post itself. `inherited` comes from its folders, the
    nearest first, and then from its site. A time without an offset is in UTC. `now` is in RFC 3339.
    """
    if reason := next(_reasons(values, now), ""):
        return reason
    own = {_plain(name) for name in values}
    for source, data, is_default, why in inherited:
        counting = {name: value for name, value in data.items() if not (is_default and _plain(name) in own)}
        if reason := why or next((f"{entry} in {source}" for entry in _reasons(counting, now)), ""):
            return reason
    return ""


def future_publication(params: Mapping[str, Any], now: str) -> str:
    """Return a future publication date in `params`, as `name: value`, or ""."""
    for name, value in params.items():
        if PUBLICATION.fullmatch(_plain(name)) and _is_future(str(value).strip()[:1000], now):
            return shown(f"{name}: {str(value)[:40]}")
    return ""


def hides(name: str, value: Any) -> bool:
    """Return whether a value under this name hides a post, now or at a later time (such as an expiry date)."""
    return any(_reasons({name: value}, LATEST)) or bool(future_publication({name: value}, LATEST))


def without_passwords(value: Any) -> Any:
    return filtered(value, lambda name, part: not _is_password(name, part))


def _is_password(name: str, value: Any) -> bool:
    plain, word = _plain(name), str(value).strip().lower()[:MAX_PARAM_NAME]
    is_word = word in ON | OFF | PUBLIC | EMPTY or bool(HIDING.search(_plain(word)))
    return bool(PASSWORD.fullmatch(plain)) or (plain in MAY_BE_PASSWORD and not is_word)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name[: MAX_PARAM_NAME + 1]).lower()


@lru_cache(maxsize=4096)
def _tests(name: str) -> tuple[Callable[[str, str], bool], ...]:
    plain = _plain(name)
    while match := NEUTRAL.match(plain):
        plain = plain[match.end() :]
    tests = tuple(test for test, names in NAMES.items() if re.fullmatch(names, plain))
    return (*tests, _hides) if HIDING.search(plain) and not PART_OF_PAGE.search(plain) else tests


def _reasons(values: Mapping[str, Any], now: str, prefix: str = "") -> Iterator[str]:
    """Yield reasons to hide a post as `name: value`, or as the name alone if the value may be a password."""
    for name, value in values.items():
        if len(name) > MAX_PARAM_NAME:  # too long to be kept in `params`
            continue
        path = f"{prefix}{name}"
        for element in value if isinstance(value, list) else [value]:
            if isinstance(element, dict) and element and PASSWORD.fullmatch(_plain(name)):
                yield shown(path)
            elif isinstance(element, dict):
                yield from _reasons(element, now, f"{path}.")
            elif not isinstance(element, list):
                word = str(element).strip()[:1000]
                if word.lower() not in EMPTY and any(test(word.lower(), now) for test in _tests(path)):
                    yield shown(path if _is_password(name, element) else f"{path}: {word[:40]}")
    yield from (f"the tag {tag}" for tag in _tags(values) if tag in HIDING_TAGS and not prefix)


def _tags(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if name.lower() in NAMES_OF_FIELDS["tags"] and isinstance(value, str | list):
            tags = value.split(",") if isinstance(value, str) else value
            yield from (str(tag).strip(" #").lower() for tag in tags if isinstance(tag, str))
