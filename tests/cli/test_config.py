"""The settings."""

from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path

import pytest

from blogapi.config import Config, zone_named
from tests.cases import cases

PROXIES = "must be addresses or networks such as 127.0.0.1 or 10.0.0.0/8, with commas between them"


def test_settings_have_defaults_and_the_variables_of_push_and_pull_are_ignored():
    config = Config.from_environ({})
    assert (config.host, config.port, config.rate_limit) == ("127.0.0.1", 8000, 100)
    assert (config.database, str(config.timezone)) == (Path("blog.db"), "UTC")
    assert (config.webhook_seconds, config.webhook_private, config.images_mb) == (15, False, 2048)
    assert Config.from_environ({"BLOGAPI_REMOTE": "https://a", "BLOGAPI_KEY": "blog_"}) == Config()


@cases(
    ("name", "near"),
    ("europe/berlin", "Europe/Berlin, Europe/Dublin, Europe/Helsinki"),
    ("Tokyo", "Asia/Tokyo, "),
    ("CEST", "Europe/Amsterdam, Europe/Andorra, Europe/Belgrade"),
    ("AEDT", "Australia/ACT, "),
    ("../etc/passwd", ""),
    ("?" * 100_000, ""),
)
def test_an_unknown_zone_is_refused_with_three_suggestions(name, near):
    with pytest.raises(ValueError, match=r"^BLOGAPI_TIMEZONE: must be the IANA name of a time zone, such as") as error:
        Config.from_environ({"BLOGAPI_TIMEZONE": name})
    assert (near in str(error.value), str(error.value).count(", "), len(str(error.value)) < 250) == (True, 4, True)


@cases(
    ("environ", "url"),
    ({}, "http://127.0.0.1:8000"),
    ({"HOST": "0.0.0.0", "PORT": "80"}, "http://127.0.0.1:80"),
    ({"HOST": "::"}, "http://127.0.0.1:8000"),
    ({"HOST": "fe80::1"}, "http://[fe80::1]:8000"),
    ({"HOST": "[::1]"}, "http://[::1]:8000"),
    ({"HOST": "blog.local"}, "http://blog.local:8000"),
    ({"BLOGAPI_URL": "https://blog.example.org/"}, "https://blog.example.org"),
    ({"BLOGAPI_URL": "http://[::1]:81"}, "http://[::1]:81"),
)
def test_the_url_defaults_to_the_address_of_the_server(environ, url):
    assert Config.from_environ(environ).base_url == url


STRANGE_FILES = ["a=b.db", "/a@b:c.db", "host", "//mnt/blog.db", "my postgresql.db"]
NETWORKS = [ip_network("10.0.0.0/8"), ip_network("::1/128"), ip_network("fd00::/8")]


@cases(
    ("variable", "text", "name", "value"),
    ("HOST", "::1", "host", "::1"),
    ("PORT", "80", "port", 80),
    *(("BLOGAPI_DATABASE", name, "database", Path(name)) for name in ("x.db", *STRANGE_FILES)),
    ("BLOGAPI_TIMEZONE", "Etc/GMT+5", "timezone", zone_named("Etc/GMT+5")),
    ("BLOGAPI_TIMEZONE", "America/Argentina/Ushuaia", "timezone", zone_named("America/Argentina/Ushuaia")),
    ("BLOGAPI_URL", "https://a", "prefix", ""),
    ("BLOGAPI_URL", "https://a/", "prefix", ""),
    ("BLOGAPI_URL", "https://a:1/b/c.d/", "prefix", "/b/c.d"),
    ("BLOGAPI_URL", "https://a/v10", "prefix", "/v10"),
    ("BLOGAPI_WEBHOOK_PRIVATE", "true", "webhook_private", True),
    ("BLOGAPI_WEBHOOK_PRIVATE", "false", "webhook_private", False),
    ("BLOGAPI_TRUSTED_PROXIES", "", "trusted_proxies", ()),
    ("BLOGAPI_TRUSTED_PROXIES", "10.0.0.1", "trusted_proxies", (ip_network("10.0.0.1/32"),)),
    ("BLOGAPI_TRUSTED_PROXIES", "10.0.0.0/8 , ::1,fd00::/8", "trusted_proxies", (*NETWORKS,)),
    ("BLOGAPI_CORS_ORIGINS", "*", "cors_origins", {"*"}),
    ("BLOGAPI_CORS_ORIGINS", "https://a.b", "cors_origins", {"https://a.b"}),
    ("BLOGAPI_CORS_ORIGINS", "http://a:3000, https://b,https://b", "cors_origins", {"http://a:3000", "https://b"}),
    ("BLOGAPI_CORS_ORIGINS", "http://[::1]:8080", "cors_origins", {"http://[::1]:8080"}),
    ("BLOGAPI_CORS_ORIGINS", "https://a:80,http://a:443", "cors_origins", {"https://a:80", "http://a:443"}),
    ("BLOGAPI_CORS_ORIGINS", "moz-extension://0e1f", "cors_origins", {"moz-extension://0e1f"}),
    ("BLOGAPI_CORS_ORIGINS", "capacitor://localhost", "cors_origins", {"capacitor://localhost"}),
)
def test_the_text_of_a_setting_is_parsed(variable, text, name, value):
    assert getattr(Config.from_environ({variable: text}), name) == value


def test_a_setting_that_is_text_is_not_converted():
    @dataclass(frozen=True)
    class Extended(Config):
        motto: str = ""

    assert Extended.from_environ({"BLOGAPI_MOTTO": "Bread: /and/ wine"}).motto == "Bread: /and/ wine"


IS_NO_NUMBER = "must be a whole number from 1 to "
NO_NUMBERS = ["", "0", "-1", "1.5", "1_0", "٣", " 1", "ten", "1e3", "9" * 10]
OF_THE_SERVICE = "/v1 /v1/ /blog/v1 /v1/posts /docs /settings/keys /metrics /blog/metrics /healthz /blog/openapi.json"
NO_URLS = ["https://a//b", "https://a/b c", "https://a?b", "https://a#b", "https://a/b/..", "https://a/./b", "/"]
NO_URLS += ["blog.example.org", "ftp://a", "javascript://a"]
NO_URLS += [f"https://{host}" for host in ("", "u@a", "a b", "a'b", "ä", "a:", "a:b", "a:65536", "[a")]
NO_PAGES = ["https://a.example/{slug}/{slug}", "https://{slug}/", "https://a.example/\x01/{slug}"]
NO_FILE = "must be a file or postgresql://USER@HOST/NAME"
# Each has a password or leads elsewhere, and is not shown.
NO_FILES = ["mysql://me@host/blog", "host=h user=u password=SECRET dbname=b", "dbname = b password=SECRET"]
NO_FILES += ["\n password=SECRET", "postgresql:/u:SECRET@h/b", "postgres:u:SECRET@h/b", "//u:SECRET@h/b"]
NO_FILES += ["Postgresql://u:SECRET@h/b", " postgresql://u:SECRET@h/b", "mysql://u:SECRET@h/b"]


@cases(
    ("variable", "texts", "message"),
    ("BLOGAPI_KEEP_DAYS", ["36501"], "must be a whole number from 0 to 36500, not '36501'"),
    ("BLOGAPI_BODY_SECONDS", ["86401"], f"{IS_NO_NUMBER}86400, not '86401'"),
    ("PORT", ["65536"], f"{IS_NO_NUMBER}65535, not '65536'"),
    ("PORT", NO_NUMBERS, f"{IS_NO_NUMBER}65535, not "),
    ("BLOGAPI_RATE_LIMIT", NO_NUMBERS, f"{IS_NO_NUMBER}999999999, not "),
    ("WEB_CONCURRENCY", ["2"], "must be 1 with SQLite: two workers would double the rate limit"),
    ("HOST", [""], "must not be empty"),
    ("BLOGAPI_WEBHOOK_PRIVATE", ["1"], "must be true or false, not '1'"),
    ("BLOGAPI_LOG_LEVEL", ["INFO"], "must be debug, info, warning or error, not 'INFO'"),
    ("BLOGAPI_LOG_FORMAT", [""], "must be text or json, not ''"),
    ("BLOGAPI_DATABASE", [""], "must not be empty"),
    ("BLOGAPI_DATABASE", NO_FILES, f"{NO_FILE}$"),
    ("BLOGAPI_URL", [f"https://example.org{path}" for path in OF_THE_SERVICE.split()], "must be the URL of the"),
    ("BLOGAPI_URL", NO_URLS, "must be http:// or https://, a host, and optionally a port and a path"),
    ("BLOGAPI_POST_URL", NO_PAGES, "must be an ASCII URL with {slug} or {id} in its path"),
    ("BLOGAPI_POST_URL", ["https://a.example/日記/{slug}"], ".*, with other characters as %C3%A4; not"),
    ("BLOGAPI_CORS_ORIGINS", [""], "must not be empty"),
    ("BLOGAPI_TRUSTED_PROXIES", ["caddy"], f"{PROXIES}: 'caddy' "),
    ("BLOGAPI_TRUSTED_PROXIES", ["10.0.0.1/8"], f"{PROXIES}: 10.0.0.1/8 "),
    ("BLOGAPI_TRUSTED_PROXIES", ["::1,"], f"{PROXIES}: '' "),
)
def test_an_unusable_setting_is_named(variable, texts, message):
    for text in texts:
        with pytest.raises(ValueError, match=f"^{variable}: {message}"):
            Config.from_environ({variable: text})


NO_ORIGINS = ["", "*", "null", "a.example", "HTTPS://a.example", "https://a https://b", "http://[::1]:80"]
NO_ORIGINS += [f"https://{rest}" for rest in ("", "a/", "a/blog", "a?", "A.b", "*.example", "me@a", "blög.example")]
NO_ORIGINS += [f"https://a:{port}" for port in ("", "0", "443")]


@cases("origin", NO_ORIGINS)
def test_an_origin_is_written_as_browsers_send_it(origin):
    with pytest.raises(ValueError, match=r"BLOGAPI_CORS_ORIGINS: must be \* or origins") as raised:
        Config.from_environ({"BLOGAPI_CORS_ORIGINS": f"https://a.b,{origin}"})
    assert str(raised.value).endswith(f"a path or a slash at the end; not {origin!r}")


OF_KUBERNETES = "Kubernetes sets this for a Service"


@cases(
    ("variable", "value", "hint"),
    ("BLOGAPI_DATABSE", "1", r"did you mean BLOGAPI_DATABASE\?$"),
    ("BLOGAPI_RATELIMIT", "1", r"did you mean BLOGAPI_RATE_LIMIT\?$"),
    ("BLOGAPI_WEBHOOKS_PRIVATE", "1", r"did you mean BLOGAPI_WEBHOOK_PRIVATE\?$"),
    ("BLOGAPI_rate_limit", "1", r"did you mean BLOGAPI_RATE_LIMIT\?$"),
    ("BLOGAPI_PORT", "1", r"did you mean PORT\?$"),
    ("BLOGAPI_X", "1", "known: HOST, PORT, BLOGAPI_DAT"),
    ("BLOGAPI_PORT", "tcp://10.0.0.1:8000", OF_KUBERNETES),
    *((f"BLOGAPI_{name}", "1", OF_KUBERNETES) for name in ("SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT_8000_TCP_ADDR")),
)
def test_an_unknown_setting_is_refused_with_a_hint(variable, value, hint):
    with pytest.raises(ValueError, match=f"^{variable}: unknown setting; {hint}"):
        Config.from_environ({variable: value})
