"""Check that the locked packages have wheels for each Python, system and processor that blogapi supports.

It reads a pylock.toml (PEP 751) from standard input, prints what is missing, and exits with 1 if that is new.
"""

import re
import sys
import tomllib
from itertools import product

from packaging.markers import Marker
from packaging.utils import parse_wheel_filename

MINORS = range(11, 16)  # minor versions of Python 3
PLATFORMS = {
    "Linux with glibc, x86-64": ("linux", r"manylinux(1|20\d\d|_2_(\d|[12]\d|3[0-5]))_x86_64"),
    "Linux with glibc, arm64": ("linux", r"manylinux(20\d\d|_2_(\d|[12]\d|3[0-5]))_aarch64"),
    "Linux with musl, x86-64": ("linux", r"musllinux_1_[0-2]_x86_64"),
    "Linux with musl, arm64": ("linux", r"musllinux_1_[0-2]_aarch64"),
    "macOS, x86-64": ("darwin", r"macosx_1[0-3]_\d+_(x86_64|universal2)"),
    "macOS, arm64": ("darwin", r"macosx_1[0-3]_\d+_(arm64|universal2)"),
}
KNOWN = {  # patterns of where
    # They install without a compiler, too, minus their C extensions.
    "pyyaml": "",
    "zope-interface": "",
    # Its source needs a compiler, so the Makefile recommends a newer Python.
    "gevent": "3.11 on macOS",
    # Its source needs a compiler, too; docs/importing.md says so.
    "turbohtml": "3[.][0-9]+ on macOS, x86-64",
}


def is_needed(package: dict, minor: int, system: str) -> bool:
    """Return whether a package is needed there."""
    environment = {"sys_platform": system, "os_name": "posix", "python_full_version": f"3.{minor}.9"}
    return Marker(package.get("marker", "os_name == 'posix'")).evaluate(environment)


def has_wheel(package: dict, minor: int, platform: str) -> bool:
    """Return whether a package has a wheel for a Python, and for a platform tag that matches a pattern."""
    names = [wheel["url"].rpartition("/")[2] for wheel in package.get("wheels", ())]
    tags = [tag for name in names for tag in parse_wheel_filename(name)[3]]
    return any(
        re.fullmatch(rf"any|{platform}", tag.platform)
        and (
            (tag.interpreter, tag.abi) in {(f"cp3{minor}", f"cp3{minor}"), ("py3", "none")}
            or (tag.abi == "abi3" and int(tag.interpreter[3:]) <= minor)
        )
        for tag in tags
    )


def main() -> int:
    packages, status = tomllib.load(sys.stdin.buffer)["packages"], 0
    for package, minor, (name, (system, platform)) in product(packages, MINORS, PLATFORMS.items()):
        if is_needed(package, minor, system) and not has_wheel(package, minor, platform):
            known = bool(re.match(KNOWN.get(package["name"], "nowhere"), f"3.{minor} on {name}"))
            status |= not known
            print(f"no wheel{'' if known else ' ANY MORE'}: {package['name']} for Python 3.{minor} on {name}")
    return status


if __name__ == "__main__":
    sys.exit(main())
