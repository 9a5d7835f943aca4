"""Define the settings and their defaults, and read the environment variables that override them."""

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from datetime import UTC, datetime, tzinfo
from difflib import get_close_matches
from functools import cached_property
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args, get_origin
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, available_timezones

from blogapi import env_file

UNPREFIXED = ("host", "port", "web_concurrency")
POSTGRESQL = ("postgresql://", "postgres://")
# Values of BLOGAPI_DATABASE that are not files, such as mistyped URLs. A file with such a name would reveal its
# password.
NOT_A_FILE = re.compile(
    r"(postgres(ql)?:|//[^/]*@|.*://|(.*\s)?(host(addr)?|port|dbname|user|password|passfile|service)\s*=)", re.I | re.S
)
PREFIX = "BLOGAPI_"
LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["text", "json"]
CLIENT_VARIABLES = ("BLOGAPI_REMOTE", "BLOGAPI_KEY")  # variables for push and pull, which may run on the same machine
# http or https, a host, and optionally a port and a path without dot segments, all in characters safe in a shell
BASE_URL = re.compile(
    r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?((/(?!\.\.?(/|$))[A-Za-z0-9._~-]+)*)"
)
# Paths that collide with paths of the service, or are paths in the API
OWN_PATH = re.compile(r"^/(v1|docs|settings|images|micropub)(/|$)|/(v1|metrics|healthz|readyz|openapi\.json)$")
# Variables that Kubernetes sets for a Service called blogapi
KUBERNETES = re.compile(r"[A-Z0-9_]+_(SERVICE_(HOST|PORT)\w*=.*|PORT\w*=(tcp|udp|sctp)://.*|PORT_[0-9]+_\w+=.*)")
# An origin as browsers send it: in lower case, without a default port (RFC 6454, section 6.1)
ORIGIN = re.compile(
    r"(?!http://[^/]*:80$|https://[^/]*:443$)"
    r"[a-z][a-z0-9+.-]*://([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9][0-9]{0,4})?"
)
ZONE_NAME = re.compile(r"(?!(posix|right)/|localtime|posixrules)[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}")

Networks = tuple[IPv4Network | IPv6Network, ...]
Origins = frozenset[str]


@dataclass(frozen=True)
class Config:
    """The settings. The names of their variables begin with BLOGAPI_, except for the UNPREFIXED ones."""

    host: str = "127.0.0.1"
    port: Annotated[int, 1, 65_535] = 8000
    # A file, or the URL of a PostgreSQL database, which may contain a password
    database: Path | str = Path("blog.db")
    create: bool = True  # whether the server sets up a missing or empty database
    database_connections: Annotated[int, 1, 1000] = 5  # per process, for PostgreSQL; the leader lock needs one more
    web_concurrency: Annotated[int, 1, 256] = 1  # number of processes; more than one needs PostgreSQL
    rate_limit: Annotated[int, 1, 999_999_999] = 100  # requests per minute for each key
    log_level: LogLevel = "info"
    log_format: LogFormat = "text"
    drain_seconds: Annotated[int, 0, 60] = 0  # how long a stopping service continues to serve; see /readyz
    header_seconds: Annotated[int, 1, 86_400] = 10  # deadline for a request's header
    body_seconds: Annotated[int, 1, 86_400] = 10  # deadline for a request's body, plus one second per 16 KiB
    keep_days: Annotated[int, 0, 36_500] = 30  # how long revisions and deleted posts are kept; 0 keeps none
    images_mb: Annotated[int, 0, 99_999_999] = 2048  # maximum total size of all images, in MiB; 0 turns uploads off
    webhook_seconds: Annotated[int, 1, 86_400] = 15  # deadline for a receiver's response
    webhook_private: bool = False  # whether webhooks may call private and loopback addresses
    cors_origins: Origins = frozenset()  # origins whose pages may call the API; * means all
    trusted_proxies: Networks = ()  # proxies whose X-Forwarded-For is trusted
    url: str = ""  # the public URL of the service
    timezone: tzinfo = UTC  # for times without an offset in front matter, Micropub and imports, and on the owner's page
    post_url: str = ""  # URL of a post on the site, with {slug} or {id}; by default, its URL in the API

    @cached_property
    def base_url(self) -> str:
        """The URL of the service: the public one, or http://HOST:PORT."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return self.url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @cached_property
    def prefix(self) -> str:
        """The path of BLOGAPI_URL, such as /blog. Every path of the service begins with this prefix."""
        return urlsplit(self.base_url).path

    def url_on_site(self, post: Mapping[str, str]) -> str:
        """Return the URL of a post on the site, or "" if BLOGAPI_POST_URL is not set."""
        return self.post_url.replace("{slug}", post["slug"]).replace("{id}", post["id"])

    def without_prefix(self, path: str) -> str:
        """Remove the prefix from a path, unless the proxy has already removed it."""
        return path[len(self.prefix) :] if f"{path}/".startswith(f"{self.prefix}/") else path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings. Raises ValueError with the name of the variable, and with what its value must be."""
        variables = cls.variables()
        for variable, value in environ.items():
            if variable.startswith(PREFIX) and variable not in (*variables, *CLIENT_VARIABLES, env_file.VARIABLE):
                raise ValueError(f"{variable}: unknown setting; {_suggestion(variable, value, list(variables))}")
        values: dict[str, Any] = {}
        for variable, setting in variables.items():
            try:
                if variable in environ:
                    values[setting.name] = _convert(setting, environ[variable])
            except ValueError as error:
                raise ValueError(f"{variable}: {error}") from None
        if values.get("web_concurrency", 1) != 1 and not isinstance(values.get("database"), str):
            raise ValueError("WEB_CONCURRENCY: must be 1 with SQLite: two workers would double the rate limit")
        return cls(**values)

    @classmethod
    def variables(cls) -> dict[str, Field]:
        """Return the settings, keyed by the names of their environment variables."""
        settings = {setting.name: setting for setting in fields(cls)}
        return {name.upper() if name in UNPREFIXED else PREFIX + name.upper(): settings[name] for name in settings}


def _suggestion(variable: str, value: str, variables: list[str]) -> str:
    if KUBERNETES.fullmatch(f"{variable}={value}"):
        return "Kubernetes sets this for a Service: rename the Service, or set enableServiceLinks: false in the Pod"
    names = {name.removeprefix(PREFIX): name for name in variables}  # With the prefix, all names would look similar.
    close = get_close_matches(variable.removeprefix(PREFIX).upper(), names, n=1)
    return f"did you mean {names[close[0]]}?" if close else f"known: {', '.join(variables)}"


def _convert(setting: Field, text: str) -> str | int | bool | Path | Networks | Origins | tzinfo:
    if get_origin(setting.type) is Annotated:  # an int with its bounds
        return _whole_number(text, *get_args(setting.type)[1:])
    if setting.type is bool:
        return _one_of(("true", "false"), text) == "true"
    if get_origin(setting.type) is Literal:
        return _one_of(get_args(setting.type), text)
    if setting.type == Networks:
        return _networks(text)
    if not text:
        raise ValueError("must not be empty")
    if setting.type == Origins:
        return _origins(text)
    if setting.type == tzinfo:
        return _time_zone(text)
    if setting.name == "url":
        return _base_url(text.rstrip("/"))
    if setting.name == "post_url":
        return _post_url(text)
    if setting.name == "host":
        return text.removeprefix("[").removesuffix("]")
    if setting.name == "database" and not text.startswith(POSTGRESQL):
        if NOT_A_FILE.match(text):
            raise ValueError("must be a file or postgresql://USER@HOST/NAME")
        return Path(text)
    return text


def _whole_number(text: str, lowest: int, highest: int) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < 10
    if not is_number or not lowest <= int(text) <= highest:
        raise ValueError(f"must be a whole number from {lowest} to {highest}, not {text[:40]!r}")
    return int(text)


def _one_of(choices: tuple[str, ...], text: str) -> str:
    if text not in choices:
        raise ValueError(f"must be {', '.join(choices[:-1])} or {choices[-1]}, not {text[:40]!r}")
    return text


def _time_zone(text: str) -> tzinfo:
    if zone := UTC if text == "UTC" else zone_named(text):
        return zone
    near = ", ".join(_zones_near(text[:40]))
    raise ValueError(f"must be the IANA name of a time zone, such as {near}, not {text[:40]!r}")


def _zones_near(text: str) -> list[str]:
    """Return up to three time zones with this abbreviation, such as CEST, or with a similar name if there are none."""
    names = [name for name in sorted(available_timezones()) if "/" in name and not name.startswith("Etc/")]
    seasons = [datetime(2026, month, 1, tzinfo=UTC) for month in (1, 7)]
    same = [name for name in names if text in {season.astimezone(ZoneInfo(name)).tzname() for season in seasons}]
    same.sort(key=lambda name: not name.startswith("Europe/"))
    similar = {name.lower(): name for name in names}
    return same[:3] or [similar[name] for name in get_close_matches(text.lower(), similar, cutoff=0)]


def zone_named(name: str) -> tzinfo | None:
    """Return the time zone with an IANA name, or None if it is unknown."""
    try:
        return ZoneInfo(name) if ZONE_NAME.fullmatch(name) and len(name) < 50 else None
    except (KeyError, OSError, ValueError):  # The name is unknown, or belongs to a folder or another file.
        return None


def _base_url(url: str) -> str:
    match = BASE_URL.fullmatch(url)
    if not match or int(match[2] or 0) > 65535:
        raise ValueError(
            "must be http:// or https://, a host, and optionally a port and a path, "
            f"such as https://blog.example.org or https://example.org/blog, not {url.rpartition('@')[2][:80]!r}"
        )
    if OWN_PATH.search(match[3]):
        raise ValueError(
            "must be the URL of the service, not of its API or of a page; its path must not begin with "
            "/v1, /docs, /images, /micropub or /settings, or end in /v1, /metrics, /healthz, /readyz or /openapi.json, "
            f"as in {url[:80]!r}"
        )
    return url


def _post_url(text: str) -> str:
    url = re.fullmatch(r"(?=[!-~]*\Z)https?://[^/?#{}]+(/[^?#]*)", text)  # only ASCII, for the Location header
    if not url or url[1].count("{slug}") + url[1].count("{id}") != 1:
        example = "such as https://blog.example.org/posts/{slug}/, with other characters as %C3%A4"
        raise ValueError(f"must be an ASCII URL with {{slug}} or {{id}} in its path, {example}; not {text[:80]!r}")
    return text


def _origins(text: str) -> Origins:
    origins = [origin.strip() for origin in text.split(",")]
    for origin in origins:
        if origins != ["*"] and not ORIGIN.fullmatch(origin):
            raise ValueError(
                "must be * or origins with commas between them, each as a browser sends it, such as "
                "https://blog.example.org or http://localhost:3000: in lower case, without a default port, "
                f"a path or a slash at the end; not {origin[:80]!r}"
            )
    return frozenset(origins)


def _networks(text: str) -> Networks:
    try:
        return tuple(ip_network(item.strip()) for item in text.split(",") if text)
    except ValueError as error:
        example = "such as 127.0.0.1 or 10.0.0.0/8, with commas between them"
        raise ValueError(f"must be addresses or networks {example}: {str(error)[:80]}") from None


def is_loopback(url: str) -> bool:
    """Return whether only this machine can reach a URL."""
    host = urlsplit(url).hostname or ""
    return host == "localhost" or host.startswith("127.") or host == "::1"
