"""README and the pages of docs/: their links, and the settings and files that they name."""

import re

import pytest

from blogapi.config import Config
from tests.pages import NAMES, Page
from tests.service import CHECKOUT


def test_a_container_is_built_from_all_that_it_copies_and_nothing_else():
    copied = re.findall(r"^COPY (.+) \S+$", (CHECKOUT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    patterns = " ".join(copied).split()
    allowed = re.findall("^!(.+)$", (CHECKOUT / "deploy/Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert {path.name for pattern in patterns for path in CHECKOUT.glob(pattern)} == {*allowed}


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_a_heading(name):
    for target, anchor in Page(name).links:
        path = (CHECKOUT / name).parent / target if target else CHECKOUT / name
        assert path.is_file(), target
        assert not anchor or anchor in Page(path).anchors, f"{target}#{anchor}"


def test_the_readme_leads_to_every_page():
    assert {name for name in NAMES if name.startswith("docs/")} <= {target for target, _ in Page("README.md").links}


def test_the_pages_name_every_setting():
    rows = re.compile(r"^\| `(HOST|PORT|WEB_CONCURRENCY|BLOGAPI_\w+)` \|", re.MULTILINE)
    assert rows.findall(Page("docs/settings.md").text) == list(Config.variables())
