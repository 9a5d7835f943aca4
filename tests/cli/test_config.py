"""The settings."""

from pathlib import Path

import pytest

from blogapi.config import Config

PROXIES = "must be addresses or networks such as 127.0.0.1 or 10.0.0.0/8, with commas between them"


def test_the_defaults():
    config = Config.from_environ({})
    assert (config.host, config.port, config.rate_limit) == ("127.0.0.1", 8000, 100)
    assert config.database == Path("blog.db")
    assert (config.webhook_seconds, config.webhook_private) == (15, False)


def test_the_environment_overrides():
    config = Config.from_environ({"HOST": "::1", "PORT": "80", "BLOGAPI_DATABASE": "x.db", "BLOGAPI_RATE_LIMIT": "7"})
    assert (config.host, config.port, config.rate_limit, config.database) == ("::1", 80, 7, Path("x.db"))


@pytest.mark.parametrize(
    ("environ", "url"),
    [
        ({}, "http://127.0.0.1:8000"),
        ({"HOST": "0.0.0.0", "PORT": "80"}, "http://127.0.0.1:80"),
        ({"HOST": "::"}, "http://127.0.0.1:8000"),
        ({"HOST": "fe80::1"}, "http://[fe80::1]:8000"),
        ({"HOST": "blog.local"}, "http://blog.local:8000"),
        ({"BLOGAPI_URL": "https://blog.example.org/"}, "https://blog.example.org"),
        ({"BLOGAPI_URL": "http://[::1]:81"}, "http://[::1]:81"),
    ],
)
def test_the_url_defaults_to_the_address_of_the_server(environ, url):
    assert Config.from_environ(environ).url == url


@pytest.mark.parametrize(
    ("url", "prefix"),
    [("https://a", ""), ("https://a/", ""), ("https://a:1/b/c.d/", "/b/c.d"), ("https://a/v10", "/v10")],
)
def test_the_path_of_the_url_is_the_prefix_of_every_address(url, prefix):
    assert Config.from_environ({"BLOGAPI_URL": url}).prefix == prefix


OF_THE_SERVICE = "/v1 /v1/ /blog/v1 /v1/posts /docs /settings/keys /metrics /blog/metrics /healthz /blog/openapi.json"


@pytest.mark.parametrize("path", OF_THE_SERVICE.split())
def test_the_path_of_the_url_is_not_one_of_the_service_itself(path):
    with pytest.raises(ValueError, match=r"^BLOGAPI_URL: must be the address of the service, not of its API"):
        Config.from_environ({"BLOGAPI_URL": f"https://example.org{path}"})


NO_PATHS = ["https://a//b", "https://a/b c", "https://a?b", "https://a#b", "/"]
NO_SCHEMES = ["blog.example.org", "ftp://a", "javascript://a"]
NO_HOSTS = [f"https://{host}" for host in ("", "u@a", "a b", "a'b", "ä", "a:", "a:b", "[a")]


@pytest.mark.parametrize("text", NO_PATHS + NO_SCHEMES + NO_HOSTS)
def test_a_url_is_a_scheme_a_host_and_perhaps_a_path(text):
    message = "^BLOGAPI_URL: must be http:// or https://, a host, and perhaps a port and a path"
    with pytest.raises(ValueError, match=message):
        Config.from_environ({"BLOGAPI_URL": text})


@pytest.mark.parametrize(("text", "allowed"), [("true", True), ("false", False)])
def test_webhooks_may_be_allowed_to_go_to_private_addresses(text, allowed):
    assert Config.from_environ({"BLOGAPI_WEBHOOK_PRIVATE": text}).webhook_private is allowed


@pytest.mark.parametrize(
    ("text", "networks"),
    [("", ()), ("10.0.0.1", ("10.0.0.1/32",)), ("10.0.0.0/8 , ::1,fd00::/8", ("10.0.0.0/8", "::1/128", "fd00::/8"))],
)
def test_trusted_proxies_are_addresses_and_networks(text, networks):
    trusted = Config.from_environ({"BLOGAPI_TRUSTED_PROXIES": text}).trusted_proxies
    assert tuple(map(str, trusted)) == networks


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "1_0", "٣", " 1", "ten", "1e3", "9" * 10])
@pytest.mark.parametrize("variable", ["PORT", "BLOGAPI_RATE_LIMIT"])
def test_a_number_is_whole_and_at_least_1(variable, text):
    with pytest.raises(ValueError, match=f"{variable}: must be a whole number from 1"):
        Config.from_environ({variable: text})


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("BLOGAPI_KEEP_DAYS", "36501", "BLOGAPI_KEEP_DAYS: must be a whole number from 0 to 36500, not '36501'"),
        ("BLOGAPI_BODY_SECONDS", "86401", "BLOGAPI_BODY_SECONDS: must be a whole number from 1 to 86400, not '86401'"),
        ("PORT", "65536", "PORT: must be a whole number from 1 to 65535, not '65536'"),
        ("WEB_CONCURRENCY", "2", "WEB_CONCURRENCY: must be 1 or left out: two workers would double the rate limit"),
        ("HOST", "", "HOST: must not be empty"),
        ("BLOGAPI_WEBHOOK_PRIVATE", "1", "BLOGAPI_WEBHOOK_PRIVATE: must be true or false, not '1'"),
        ("BLOGAPI_DATABASE", "", "BLOGAPI_DATABASE: must not be empty"),
        ("BLOGAPI_DATABASE", "mysql://me@host/blog", "BLOGAPI_DATABASE: must be a file or postgresql://USER@HOST/NAME"),
        (
            "BLOGAPI_POST_URL",
            "https://a.example/{slug}/{slug}",
            "BLOGAPI_POST_URL: must be an ASCII URL with {slug} or {id} in",
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


@pytest.mark.parametrize(
    ("text", "origins"),
    [
        ("*", {"*"}),
        ("https://blog.example.org", {"https://blog.example.org"}),
        ("http://localhost:3000, https://a.b,https://a.b", {"http://localhost:3000", "https://a.b"}),
        ("http://[::1]:8080", {"http://[::1]:8080"}),
        ("https://a:80,http://a:443", {"https://a:80", "http://a:443"}),
        ("moz-extension://0e1f,capacitor://localhost", {"moz-extension://0e1f", "capacitor://localhost"}),
    ],
)
def test_origins_are_all_or_some(text, origins):
    assert Config.from_environ({"BLOGAPI_CORS_ORIGINS": text}).cors_origins == origins


NO_ORIGINS = ["", "*", "null", "a.example", "HTTPS://a.example", "https://a https://b", "http://[::1]:80"]
NO_ORIGINS += [
    f"https://{rest}" for rest in ("", "a/", "a/blog", "a?", "A.example", "*.example", "me@a", "blög.example")
]
NO_ORIGINS += [f"https://a:{port}" for port in ("", "0", "443")]


@pytest.mark.parametrize("origin", NO_ORIGINS)
def test_an_origin_is_written_as_browsers_send_it(origin):
    with pytest.raises(ValueError, match=r"BLOGAPI_CORS_ORIGINS: must be \* or origins") as raised:
        Config.from_environ({"BLOGAPI_CORS_ORIGINS": f"https://a.b,{origin}"})
    assert str(raised.value).endswith(f"a path or a slash at the end; not {origin!r}")


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("BLOGAPI_DATABSE", "BLOGAPI_DATABASE"),
        ("BLOGAPI_RATELIMIT", "BLOGAPI_RATE_LIMIT"),
        ("BLOGAPI_WEBHOOKS_PRIVATE", "BLOGAPI_WEBHOOK_PRIVATE"),
        ("BLOGAPI_rate_limit", "BLOGAPI_RATE_LIMIT"),
        ("BLOGAPI_PORT", "PORT"),
    ],
)
def test_an_unknown_setting_is_refused_with_the_one_that_was_meant(variable, meant):
    with pytest.raises(ValueError, match=f"^{variable}: unknown setting; did you mean {meant}\\?$"):
        Config.from_environ({variable: "1"})


def test_an_unknown_setting_like_no_other_is_refused_with_all_that_there_are():
    with pytest.raises(ValueError, match=r"^BLOGAPI_X: unknown setting; there are HOST, PORT, BLOGAPI_DAT"):
        Config.from_environ({"BLOGAPI_X": "1"})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BLOGAPI_PORT", "tcp://10.0.0.1:8000"),
        ("BLOGAPI_SERVICE_HOST", "10.0.0.1"),
        ("BLOGAPI_SERVICE_PORT_HTTP", "8000"),
        ("BLOGAPI_PORT_8000_TCP_ADDR", "10.0.0.1"),
    ],
)
def test_variables_that_kubernetes_sets_are_named_as_such(variable, value):
    with pytest.raises(ValueError, match=f"^{variable}: unknown setting; Kubernetes sets it for a Service"):
        Config.from_environ({variable: value})
