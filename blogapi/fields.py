"""The kinds of values on the wire, each with its rules and how a person is told what would be right."""

import re
import unicodedata
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields
from marshmallow.validate import Length, OneOf

from blogapi.fold import fold

STATUSES = ("published", "draft", "scheduled", "archived")
POST_EVENTS = ("post.created", "post.updated", "post.published", "post.deleted")
EVENTS = (*POST_EVENTS, "ping")
MAX_ID = 2**63 - 1

# Unpaired surrogates, and category Cc but for tab, LF and CR: re has no \p{Cc}.
UNUSABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
UNUSABLE_IN_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,30})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
WHOLE = re.compile("[1-9][0-9]*")
ID = "[1-9][0-9]{0,18}"  # and at most MAX_ID
DELIVERY_ID = "msg_[A-Za-z0-9_-]{22}"
SLUG = "[a-z0-9]+(-[a-z0-9]+)*"
# An absolute URL with a host (RFC 3986, but for characters beyond ASCII): scheme, user, host, port, and the rest.
_BLANK = r"\s\x00-\x1f\x7f-\x9f"
URL = (
    rf"[Hh][Tt][Tt][Pp][Ss]?://([^{_BLANK}/?#@\\]*@)?(\[[0-9A-Fa-f:.]+\]|[^{_BLANK}/?#@:\[\]\\<>\"]+)(:[0-9]{{0,5}})?"
    rf"([/?#][^{_BLANK}]*)?"
)
URL_HINT = "must be an absolute http or https URL without white space"

# What Unicode calls white space; str.strip() alone would take the control characters U+001C to U+001F for some, too.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))


def is_visible(character: str) -> bool:
    """Tell whether a character is neither white space nor of category Z, Cc or Cf."""
    return not character.isspace() and unicodedata.category(character) not in ("Zs", "Zl", "Zp", "Cc", "Cf")


class Text(fields.String):
    """A string of Unicode text with at least `least` and at most `most` code points, counted after trimming.

    With `one_line`, white space at both ends is trimmed, and a line break inside is refused.
    With `visible`, at least one character must be visible.
    With `pattern`, the whole of it must match that regular expression; `hint` says so to a person.
    """

    default_error_messages = {
        "required": "missing",
        "null": "must not be null",
        "invalid": "must be a string",
        "characters": "must not contain control characters or unpaired surrogates",
        "line": "must be one line without control characters or unpaired surrogates",
        "invisible": "must contain a visible character",
    }

    def __init__(
        self,
        most: int,
        *,
        least: int = 0,
        one_line: bool = False,
        visible: bool = False,
        pattern: str | None = None,
        hint: str = "",
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        bounds = f"{least} to {most:,}" if least else f"at most {most:,}"
        self.length = Length(min=least, max=most, error=f"must have {bounds} characters")
        self.one_line = one_line
        self.visible = visible
        self.pattern = re.compile(pattern) if pattern else None
        self.hint = hint

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        text = super()._deserialize(value, attr, data, **kwargs)
        if self.one_line:
            text = text.strip(WHITE_SPACE)
        self.length(text)  # before all else, whose costs grow with it
        if self.one_line:
            if UNUSABLE_IN_A_LINE.search(text):
                raise self.make_error("line")
        elif UNUSABLE.search(text):
            raise self.make_error("characters")
        # Most texts begin with a visible character; the set bounds the work where none does.
        if self.visible and not any(map(is_visible, text[:100])) and not any(map(is_visible, set(text))):
            raise self.make_error("invisible")
        if self.pattern and not self.pattern.fullmatch(text):
            raise ValidationError(self.hint)
        return text


class Tags(fields.List):
    """A list of tags; loads as a dictionary from folded names to the spellings given, a later repeat dropped."""

    default_error_messages = {"null": "must not be null", "invalid": "must be an array of strings"}

    def __init__(self, most: int, **kwargs: Any):
        super().__init__(Text(64, least=1, one_line=True, visible=True), **kwargs)
        self.most = most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, str]:
        # Before the items, or 100,000 bad ones would make 100,000 messages.
        if isinstance(value, list) and len(value) > self.most:
            raise ValidationError(f"must have at most {self.most} tags")
        tags: dict[str, str] = {}
        for name in super()._deserialize(value, attr, data, **kwargs):
            tags.setdefault(fold(name), name)
        return tags


class Choice(fields.String):
    """One of some words."""

    default_error_messages = {"null": "must not be null", "invalid": "must be a string"}

    def __init__(self, *choices: str, **kwargs: Any):
        super().__init__(validate=OneOf(choices, error="must be one of {choices}"), **kwargs)


class Events(fields.List):
    """A list of events, at least one; a repeat is dropped."""

    default_error_messages = {"null": "must not be null", "invalid": "must be an array of strings"}

    def __init__(self, **kwargs: Any):
        super().__init__(Choice(*EVENTS), **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if isinstance(value, list) and not 1 <= len(value) <= len(EVENTS):
            raise ValidationError(f"must have 1 to {len(EVENTS)} events")
        return list(dict.fromkeys(super()._deserialize(value, attr, data, **kwargs)))


class Flag(fields.Boolean):
    """true or false."""

    default_error_messages = {"null": "must not be null", "invalid": "must be true or false"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):  # marshmallow would take "yes"
            raise self.make_error("invalid")
        return value


class Tag(fields.String):
    """A tag to look for; loads as its folded name."""

    default_error_messages = {"empty": "must not be empty"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs).strip(WHITE_SPACE)
        if not name:
            raise self.make_error("empty")
        return fold(name)


class Whole(fields.Integer):
    """A whole number from 1 in ASCII digits, without sign or leading zero, as a query carries it.

    A larger one than `most` counts as `most`.
    """

    default_error_messages = {"invalid": "must be a whole number from 1"}

    def __init__(self, most: int, **kwargs: Any):
        super().__init__(**kwargs)
        self.most = most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not WHOLE.fullmatch(value):
            raise self.make_error("invalid")
        return min(int(value[:20]), self.most)  # int() would refuse 5,000 digits


class PostId(fields.String):
    """The id of a post as the service writes it; loads as a number."""

    default_error_messages = {"invalid": "must be a post's id, a whole number from 1"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not re.fullmatch(ID, value) or int(value) > MAX_ID:
            raise self.make_error("invalid")
        return int(value)


class Moment(fields.String):
    """A time in RFC 3339 with an offset; loads as the same in UTC, whole seconds."""

    default_error_messages = {
        "null": "must not be null",
        "invalid": "must be a time in RFC 3339 with an offset, such as 2026-11-20T10:10:00Z",
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str) or not MOMENT.fullmatch(value):
            raise self.make_error("invalid")
        try:
            moment = datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.make_error("invalid") from None
        return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"
