"""The settings."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from blogapi.config import Config, zone_named
from tests.cases import cases

PROXIES = "must be addresses or networks such as 127.0.0.1 or 10.0.0.0/8, with commas between them"


def test_the_defaults():
    config = Config.from_environ({})
    assert (config.host, config.port, config.rate_limit) == ("127.0.0.1", 8000, 100)
    assert (config.database, str(config.timezone)) == (Path("blog.db"), "UTC")
    assert (config.webhook_seconds, config.webhook_private, config.images_mb) == (15, False, 2048)


def test_the_variables_of_push_and_pull_are_ignored():
    assert Config.from_environ({"BLOGAPI_REMOTE": "https://a", "BLOGAPI_KEY": "blog_"}) == Config()


@cases(
    ("name", "near"),
    [
        ("europe/berlin", "Europe/Berlin, Europe/Dublin, Europe/Helsinki"),
        ("Tokyo", "Asia/Tokyo, "),
        ("CEST", "Europe/Amsterdam, Europe/Andorra, Europe/Belgrade"),
        ("AEDT", "Australia/ACT, "),
        ("../etc/passwd", ""),
        ("?" * 100_000, ""),
    ],
)
def test_another_name_is_refused_with_three_zones_that_may_be_meant(name, near):
    with pytest.raises(ValueError, match=r"^BLOGAPI_TIMEZONE: must be the IANA name of a time zone, such as") as error:
        Config.from_environ({"BLOGAPI_TIMEZONE": name})
    assert (near in str(error.value), str(error.value).count(", "), len(str(error.value)) < 250) == (True, 4, True)


@cases(
    ("environ", "url"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"HOST": "0.0.0.0", "PORT": "80"}, "http://127.0.0.1:80"),
        ({"HOST": "::"}, "http://127.0.0.1:8000"),
        ({"HOST": "fe80::1"}, "http://[fe80::1]:8000"),
        ({"HOST": "[::1]"}, "http://[::1]:8000"),
        ({"HOST": "blog.local"}, "http://blog.local:8000"),
        ({"BLOGAPI_URL": "https://blog.example.org/"}, "https://blog.example.org"),
        ({"BLOGAPI_URL": "http://[::1]:81"}, "http://[::1]:81"),
    ],
)
def test_the_url_defaults_to_the_address_of_the_server(environ, url):
    assert Config.from_environ(environ).base_url == url


OF_THE_SERVICE = "/v1 /v1/ /blog/v1 /v1/posts /docs /settings/keys /metrics /blog/metrics /healthz /blog/openapi.json"


@cases("path", OF_THE_SERVICE.split())
def test_the_path_of_the_url_must_not_be_one_of_the_service_itself(path):
    with pytest.raises(ValueError, match=r"^BLOGAPI_URL: must be the address of the service, not of its API"):
        Config.from_environ({"BLOGAPI_URL": f"https://example.org{path}"})


NO_PATHS = ["https://a//b", "https://a/b c", "https://a?b", "https://a#b", "/"]
NO_SCHEMES = ["blog.example.org", "ftp://a", "javascript://a"]
NO_HOSTS = [f"https://{host}" for host in ("", "u@a", "a b", "a'b", "ä", "a:", "a:b", "[a")]


@cases("text", NO_PATHS + NO_SCHEMES + NO_HOSTS)
def test_a_url_is_a_scheme_a_host_and_optionally_a_path(text):
    message = "^BLOGAPI_URL: must be http:// or https://, a host, and perhaps a port and a path"
    with pytest.raises(ValueError, match=message):
        Config.from_environ({"BLOGAPI_URL": text})


NETWORKS = [ip_network("10.0.0.0/8"), ip_network("::1/128"), ip_network("fd00::/8")]


@cases(
    ("variable", "text", "name", "value"),
    [
        ("HOST", "::1", "host", "::1"),
        ("PORT", "80", "port", 80),
        ("BLOGAPI_DATABASE", "x.db", "database", Path("x.db")),
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
    ],
)
def test_the_text_of_a_setting_is_parsed(variable, text, name, value):
    assert getattr(Config.from_environ({variable: text}), name) == value


@cases("text", ["", "0", "-1", "1.5", "1_0", "٣", " 1", "ten", "1e3", "9" * 10])
@cases("variable", ["PORT", "BLOGAPI_RATE_LIMIT"])
def test_a_number_is_whole_and_at_least_1(variable, text):
    with pytest.raises(ValueError, match=f"{variable}: must be a whole number from 1"):
        Config.from_environ({variable: text})


@cases(
    ("variable", "text", "message"),
    [
        ("BLOGAPI_KEEP_DAYS", "36501", "BLOGAPI_KEEP_DAYS: must be a whole number from 0 to 36500, not '36501'"),
        ("BLOGAPI_BODY_SECONDS", "86401", "BLOGAPI_BODY_SECONDS: must be a whole number from 1 to 86400, not '86401'"),
        ("PORT", "65536", "PORT: must be a whole number from 1 to 65535, not '65536'"),
        (
            "WEB_CONCURRENCY",
            "2",
            "WEB_CONCURRENCY: must be 1 or left out with SQLite: two workers would double the rate",
        ),
        ("HOST", "", "HOST: must not be empty"),
        ("BLOGAPI_WEBHOOK_PRIVATE", "1", "BLOGAPI_WEBHOOK_PRIVATE: must be true or false, not '1'"),
        ("BLOGAPI_LOG_LEVEL", "INFO", "BLOGAPI_LOG_LEVEL: must be debug, info, warning or error, not 'INFO'"),
        ("BLOGAPI_LOG_FORMAT", "", "BLOGAPI_LOG_FORMAT: must be text or json, not ''"),
        ("BLOGAPI_DATABASE", "", "BLOGAPI_DATABASE: must not be empty"),
        ("BLOGAPI_DATABASE", "mysql://me@host/blog", "BLOGAPI_DATABASE: must be a file or postgresql://USER@HOST/NAME"),
        (
            "BLOGAPI_POST_URL",
            "https://a.example/{slug}/{slug}",
            "BLOGAPI_POST_URL: must be an ASCII URL with {slug} or",
        ),
        (
            "BLOGAPI_POST_URL",
            "https://{slug}/",
            "BLOGAPI_POST_URL: must be an ASCII URL with {slug} or {id} in its path",
        ),
        ("BLOGAPI_POST_URL", "https://a.example/日記/{slug}", "with other characters as %C3%A4; not"),
        ("BLOGAPI_POST_URL", "https://a.example/\x01/{slug}", "BLOGAPI_POST_URL: must be an ASCII URL"),
        ("BLOGAPI_CORS_ORIGINS", "", "BLOGAPI_CORS_ORIGINS: must not be empty"),
        ("BLOGAPI_TRUSTED_PROXIES", "caddy", f"BLOGAPI_TRUSTED_PROXIES: {PROXIES}, not 'caddy'"),
        ("BLOGAPI_TRUSTED_PROXIES", "10.0.0.1/8", f"BLOGAPI_TRUSTED_PROXIES: {PROXIES}, not '10.0.0.1/8'"),
        ("BLOGAPI_TRUSTED_PROXIES", "::1,", f"BLOGAPI_TRUSTED_PROXIES: {PROXIES}, not ''"),
    ],
)
def test_an_unusable_setting_is_named(variable, text, message):
    with pytest.raises(ValueError, match=message):
        Config.from_environ({variable: text})


NO_ORIGINS = ["", "*", "null", "a.example", "HTTPS://a.example", "https://a https://b", "http://[::1]:80"]
NO_ORIGINS += [
    f"https://{rest}" for rest in ("", "a/", "a/blog", "a?", "A.example", "*.example", "me@a", "blög.example")
]
NO_ORIGINS += [f"https://a:{port}" for port in ("", "0", "443")]


@cases("origin", NO_ORIGINS)
def test_an_origin_is_written_as_browsers_send_it(origin):
    with pytest.raises(ValueError, match=r"BLOGAPI_CORS_ORIGINS: must be \* or origins") as raised:
        Config.from_environ({"BLOGAPI_CORS_ORIGINS": f"https://a.b,{origin}"})
    assert str(raised.value).endswith(f"a path or a slash at the end; not {origin!r}")


@cases(
    "text",
    [
        "host=h user=u password=SECRET dbname=b",
        "dbname = b password=SECRET",
        "\n password=SECRET",
        "postgresql:/u:SECRET@h/b",
        "postgres:u:SECRET@h/b",
        "//u:SECRET@h/b",
        "Postgresql://u:SECRET@h/b",
        " postgresql://u:SECRET@h/b",
        "mysql://u:SECRET@h/b",
    ],
)
def test_an_address_in_another_form_is_no_file_and_is_not_shown(text):
    with pytest.raises(ValueError, match=r"^BLOGAPI_DATABASE: must be a file or postgresql://USER@HOST/NAME$"):
        Config.from_environ({"BLOGAPI_DATABASE": text})


def test_a_file_may_have_a_strange_name():
    for name in ("a=b.db", "/a@b:c.db", "host", "//mnt/blog.db", "my postgresql.db"):
        assert Config.from_environ({"BLOGAPI_DATABASE": name}).database == Path(name)


OF_KUBERNETES = "Kubernetes sets it for a Service"


@cases(
    ("variable", "value", "hint"),
    [
        ("BLOGAPI_DATABSE", "1", r"did you mean BLOGAPI_DATABASE\?$"),
        ("BLOGAPI_RATELIMIT", "1", r"did you mean BLOGAPI_RATE_LIMIT\?$"),
        ("BLOGAPI_WEBHOOKS_PRIVATE", "1", r"did you mean BLOGAPI_WEBHOOK_PRIVATE\?$"),
        ("BLOGAPI_rate_limit", "1", r"did you mean BLOGAPI_RATE_LIMIT\?$"),
        ("BLOGAPI_PORT", "1", r"did you mean PORT\?$"),
        ("BLOGAPI_X", "1", "known: HOST, PORT, BLOGAPI_DAT"),
        ("BLOGAPI_PORT", "tcp://10.0.0.1:8000", OF_KUBERNETES),
        ("BLOGAPI_SERVICE_HOST", "10.0.0.1", OF_KUBERNETES),
        ("BLOGAPI_SERVICE_PORT_HTTP", "8000", OF_KUBERNETES),
        ("BLOGAPI_PORT_8000_TCP_ADDR", "10.0.0.1", OF_KUBERNETES),
    ],
)
def test_an_unknown_setting_is_refused_with_a_hint(variable, value, hint):
    with pytest.raises(ValueError, match=f"^{variable}: unknown setting; {hint}"):
        Config.from_environ({variable: value})
