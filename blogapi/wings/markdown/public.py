"""Decide whether a post in a file of any program was public, and find the passwords in it."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from blogapi.clock import rfc3339
from blogapi.documents import MAX_PARAM_NAME
from blogapi.wings.markdown.dates import looks_like_date, rfc3339_or_empty
from blogapi.wings.markdown.front_matter import shown
from blogapi.wings.markdown.programs import NAMES_OF_FIELDS

ON = {"true", "yes", "on", "1", "y"}
OFF = {"false", "no", "off", "0", "n", "never", "none"}
EMPTY_WORDS = {"", "null", "~"}
PUBLIC_WORDS = ON | {"public", "publish", "published", "visible", "listed", "live", "open", "default"}
PUBLIC_WORDS |= {"everyone", "everybody", "anyone", "all", "world"}
# Values that hide a post under any of the names below
HIDING = re.compile(
    r"(is[ _-])?(drafts?|private|hidden|hide|secret|unlisted|delisted|unpublished|not[ _-]published|protected|internal"
    r"|((only|for)[ _-])?(members?|paid|premium|subscribers?)([ _-](only|subscriber|member)s?)?"
    r"|only[ _-]free|sent|password([ _-]protected)?|tiers|founding|friends|family|confidential|restricted|wip"
    r"|in[ _-]progress|unfinished|pending([ _-]review)?"
    r"|entwurf|privat|brouillon|borrador|privado|bozza|rascunho|szkic|черновик|下書き|草稿"
    r"|(in[ _-])?review|trash(ed)?|deleted|expired|inactive|disabled|never|skip|ignored?|embargo(ed)?|on[ _-]hold|todo)"
)
LATEST = "~"  # sorts after every time
# Names that say how a part of the page looks, and nothing about the post: `hide_title`
OF_A_PART = re.compile(
    "toc|title|cover|image|thumb|author|comment|meta|sidebar|nav|footer|header|breadcrumb|date|time|shar|related|ads?$"
    "|summary|excerpt|tags?$|categor|licen[cs]e|copyright|reading|toolbar|banner|hero|avatar|social|pagination|subscribe"
    "|newsletter|menu|heading|caption|byline|description|reaction|hashnode|message|notes?$|button|logo|widget"
)
PASSWORD = re.compile(".*pass(word|wd|phrase|code|key).*|pass|pwd|pw|encrypt(ed|ion)?(key)?|cipher(text)?")
MAY_BE_PASSWORD = {"secret", "protect", "protected", "private"}  # if their value is not one of the words above
# Mappings whose values count like those at the top, as `params` in Hugo and `extra` in Zola
NESTED = {"params", "extra", "custom", "metadata", "meta", "post", "page", "data", "frontmatter", "options", "access"}
NOT_BUILT = OFF | {"link", "local"}  # values in Hugo's `build` that leave a post out of pages or lists
HIDING_TAGS = {"draft", "drafts", "private", "unlisted", "hidden"}  # Nikola, Obsidian
# Reasons for a draft that an author expects
PLAIN_DRAFTS = {"draft: true", "published: false", "status: draft", "status: pending"}


class Inherited(NamedTuple):
    """Values that a post gets from a file of its folders or its site."""

    source: str  # the name of the file
    values: Mapping[str, Any] | None  # None: the file cannot be read
    is_default: bool = True  # whether a value of the post itself takes precedence
    hidden_tags: frozenset[str] = frozenset()


def _on(value: str, now: str) -> bool:
    return value in ON or bool(HIDING.fullmatch(value))


def _given(value: str, now: str) -> bool:
    return value not in OFF


def _not_public(value: str, now: str) -> bool:
    return value not in PUBLIC_WORDS and not re.match("[1-9]", value)  # A date is public, too.


def _past(value: str, now: str) -> bool:
    if re.fullmatch(r"\d{10}(\d{3})?", value, re.ASCII):  # seconds or milliseconds since 1970
        return rfc3339(int(value[:10])) <= now
    return value not in OFF and rfc3339_or_empty(value) <= now  # A time that is not understood counts as past.


def _future(value: str, now: str) -> bool:
    if now == LATEST:
        return bool(rfc3339_or_empty(value))
    return rfc3339_or_empty(value) > now or (looks_like_date(value) and not rfc3339_or_empty(value))


class Rule(NamedTuple):
    """Names that can hide a post, and the values with which they do."""

    names: str  # a regular expression for names in lower case, with letters and digits only
    hides: Callable[[str, str], bool]  # given a value in lower case and the present time
    or_part: bool = True  # whether the names mean the post even if they name a part of the page


# What hides a post, and programs that use the names. Any rule that matches a name counts.
RULES = (
    Rule(PASSWORD.pattern, _given),  # Hexo, hexo-blog-encrypt, WordPress
    Rule(  # Hugo, Zola, Eleventy, Docusaurus, Astro, Gatsby
        "(is|as)?(draft|private|hidden|secret|unlisted|delisted|unpublished|wip|protected|restricted)",
        _given,
    ),
    Rule(  # PaperMod, LoveIt, hugo-book, Jekyll
        ".*(draft|private|hide|hidden|unlist|delist|unpublish|secret|confidential).*"
        "|entwurf|privat|brouillon|privé|borrador|privado|bozza|rascunho|szkic|черновик|下書き|草稿",
        _on,
        or_part=False,
    ),
    Rule("(is|dg|do|to)?(publish(ed|able)?|public)", _not_public),  # Obsidian, Jekyll, Logseq
    Rule(  # Grav, Zola, Hugo
        "(is)?(visible|active|listed|list|render|output|enabled?|live|online|show|display|ready|approved|released)"
        "|show(in|on)(home|list|blog|index|posts?|archives?)(page)?",
        lambda value, now: value in OFF or bool(HIDING.fullmatch(value)),
    ),
    Rule("permalink", lambda value, now: value == "false"),  # Eleventy; `none` is a style in Jekyll
    Rule("eleventyexcludefromcollections", _given),  # Eleventy
    Rule(  # Hugo, dev.to, various themes
        "(is)?(headless|disabled|inactive|deleted|trash(ed)?|removed|embargo(ed)?|unfinished|inprogress|internal)"
        "|(is)?(ignored?|skip|excluded?)(post|page)?"
        "|exclude(d)?(from|in)?(feed|list|home(page)?|all|collections?|blog|archives?|posts?)",
        _on,
    ),
    Rule(  # Substack, Jetpack, various plugins
        "(is|only|for)?(members?|subscribers?|paid|premium|paywall(ed)?)(only)?|e?mailonly"
        "|login(required)?|requires?(login|auth(entication)?)|auth(required)?",
        _on,
    ),
    Rule("membersaccessrole|accessroles?|contentrestriction", _given),  # Members for WordPress
    Rule("(post)?(visibility|privacy)", _not_public),  # Ghost, Micropub
    Rule(  # WordPress, Pelican, Nikola, Substack
        "(post|page|article|entry|content|document|publish(ing)?|publication)?"
        "(status|state|stage|phase|type|kind|layout|audience|access|acl|permissions?|sharing)|jetpacknewsletteraccess",
        lambda value, now: bool(HIDING.fullmatch(value)),
    ),
    Rule(  # Hugo, PublishPress Future, Joomla
        "(?!no|never).*expir.*|unpublish(ed)?(at|on|date)|publish(ed)?(until|end|down)|(valid|visible)(until|to)",
        _past,
    ),
    Rule(  # various editors
        "publish(on|from|after|up|at)|(available|visible)(from|on|after)|release(d)?(on|at|date)?|notbefore"
        "|embargo(ed)?(until|date)?|schedul(ed?|ing)(at|for|on|date)?|golive(at|on|date)?",
        _future,
    ),
)


def is_public(values: Mapping[str, Any], inherited: Iterable[Inherited], now: str) -> tuple[bool, str]:
    """Return whether a post may be published; if not, also why: `draft: true in posts.json`.

    `values` are those of its file or, in an export, of the post. `inherited` are those of its folders, nearest first,
    and of its site. A time without an offset counts as UTC; `now` is in RFC 3339.
    """
    if why := next(_reasons(values, now), ""):
        return False, why
    own, tags = {_plain(name) for name in values}, {*_tags(values)}
    for source, found, is_default, hidden_tags in inherited:
        if found is None:
            return False, f"{source} cannot be read"
        counting = {name: value for name, value in found.items() if not (is_default and _plain(name) in own)}
        if why := next(_reasons(counting, now), ""):
            return False, f"{why} in {source}"
        if hidden := hidden_tags & tags:
            return False, f"the tag {min(hidden)} in {source}"
    return True, ""


def hides(name: str, value: Any) -> bool:
    """Return whether a value under this name hides a post, now or at a later time: an expiry date always does."""
    return any(_reasons({name: value}, LATEST))


def without_passwords(value: Any) -> Any:
    """Return a value without the passwords in its mappings."""
    if isinstance(value, list):
        return list(map(without_passwords, value))
    if not isinstance(value, dict):
        return value
    return {name: without_passwords(each) for name, each in value.items() if not _is_password(name, each)}


def _is_password(name: str, value: Any) -> bool:
    plain, word = _plain(name), str(value).strip().lower()
    is_word = word in ON | OFF | EMPTY_WORDS or bool(HIDING.fullmatch(word[:MAX_PARAM_NAME]))
    return bool(PASSWORD.fullmatch(plain)) or (plain in MAY_BE_PASSWORD and not is_word)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name[: MAX_PARAM_NAME + 1]).lower()


@lru_cache(maxsize=4096)
def _rules(name: str) -> tuple[Rule, ...]:
    """Return the rules for a name."""
    plain = _plain(name)
    is_part = OF_A_PART.search(plain)
    return tuple(rule for rule in RULES if re.fullmatch(rule.names, plain) and (rule.or_part or not is_part))


def _reasons(values: Mapping[str, Any], now: str) -> Iterator[str]:
    """Yield what hides a post, as `name: value`; a password is not shown."""
    for name, value in values.items():
        if len(name) > MAX_PARAM_NAME:  # Params do not keep it.
            continue
        if isinstance(value, dict):
            yield from _reasons_in(name, value, now)
        for each in value if isinstance(value, list) else [value]:
            word = str(each).strip()[:1000] if not isinstance(each, dict | list) else ""
            if word.lower() not in EMPTY_WORDS and any(rule.hides(word.lower(), now) for rule in _rules(name)):
                yield shown(name if _is_password(name, each) else f"{name}: {word[:40]}")
    yield from (f"the tag {tag}" for tag in _tags(values) if tag in HIDING_TAGS)


def _reasons_in(name: str, value: Mapping[str, Any], now: str) -> Iterator[str]:
    """Yield what hides a post in a mapping under this name: `build` in Hugo, one of NESTED, or a password."""
    plain = _plain(name)
    if plain == "build":
        limits = {part: str(value[part]) for part in value if part in ("render", "list")}
        yield from (f"{name}.{part}: {word}" for part, word in limits.items() if word.lower() in NOT_BUILT)
    elif plain in NESTED:
        flat = {part: value[part] for part in value if not isinstance(value[part], dict)}
        yield from (f"{name}.{why}" for why in _reasons(flat, now))
    elif value and PASSWORD.fullmatch(plain):
        yield shown(name)


def _tags(values: Mapping[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if name.lower() in NAMES_OF_FIELDS["tags"] and isinstance(value, str | list):
            tags = value.split(",") if isinstance(value, str) else value
            yield from (str(tag).strip(" #").lower() for tag in tags if isinstance(tag, str))
