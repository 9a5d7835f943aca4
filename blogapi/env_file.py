"""Read the settings file, which has the syntax of systemd's EnvironmentFile."""

import os
import re

VARIABLE = "BLOGAPI_CONFIG"  # contains the path of the file, as an alternative to --config
FILES = ("/etc/blogapi.env", ".env")  # without a path, the first of these files that exists is read
MAX_BYTES = 64 * 1024
# The variables to read. Others are ignored, because .env may belong to another program. Variables that begin with PG,
# such as PGPASSWORD, are for libpq.
OURS = re.compile(r"(BLOGAPI_|PG)[A-Za-z0-9_]+|HOST|PORT|WEB_CONCURRENCY")
QUOTED = r"""'([^']*+)'|"((?:\\.|[^"\\])*+)\""""
# A comment, an assignment, or any other line. Possessive quantifiers keep the time linear even for hostile files.
ENTRY = re.compile(
    rf"""[ \t\r\n]*+ (?: \Z | [#;][^\r\n]*+ | (?P<name>[^\r\n][^=\r\n]*+) (?: =
            (?P<quoted>(?:[ \t]*+(?:{QUOTED}))*+) [ \t]*+ (?!["'])
            (?P<rest>(?:\\.|[^\\ \t\r\n]|[ \t]++(?![\r\n]|\Z))*+\\?+) [ \t]*+
        )?+ (?=[\r\n]|\Z) )""",
    re.VERBOSE | re.DOTALL,
)


def load(named: str | None = None) -> tuple[str, set[str]]:
    """Add the settings in the file to the environment. Variables that are already set take precedence.

    Return the path of the file (or "" if there is none), and the names of the variables taken from the file. Raises
    OSError if the file cannot be read, or ValueError if it is invalid.
    """
    named = named or os.environ.get(VARIABLE)
    path = named or next(filter(os.path.exists, FILES), "")
    try:
        with open(path or os.devnull, "rb") as file:
            values = parse(file.read(MAX_BYTES + 1))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    except OSError as error:
        if not named and "BLOGAPI_DATABASE" in os.environ:
            return "", set()  # systemd has read the file as root and set its variables.
        raise OSError(f"cannot read {path}: {error.strerror}; --config names another file") from error
    new = {name: value for name, value in values.items() if name not in os.environ}
    os.environ |= new | {VARIABLE: os.devnull}  # keeps a server in this process from reading it again
    return path, {*new}


def parse(data: bytes) -> dict[str, str]:
    """Return the variables in a settings file that match OURS. Raises ValueError."""
    if len(data) > MAX_BYTES or b"\0" in data:
        raise ValueError(f"must be text of at most {MAX_BYTES} bytes")
    text, values, end = data.decode(), {}, 0
    while end < len(text):
        if not (entry := ENTRY.match(text, end)):
            name = text[end:].lstrip().partition("=")[0]
            raise ValueError(f"the value of {name[:80]!r} lacks a closing quotation mark")
        name, rest, end = (entry["name"] or "").rstrip(" \t"), entry["rest"], entry.end()
        if rest is not None and OURS.fullmatch(name):
            parts = re.findall(QUOTED, entry["quoted"], re.DOTALL)
            quoted = (plain or re.sub(r'\\(?:(["\\`$])|\n)', r"\1", escaped) for plain, escaped in parts)
            values[name] = "".join(quoted) + re.sub(r"\\(?:[\r\n]|(.)|\Z)", r"\1", rest, flags=re.DOTALL)
        elif "BLOGAPI_" in name:
            raise ValueError(f"a setting must be NAME=value, not {name[:80]!r}")
    return values
