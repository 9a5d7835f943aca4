"""README and the pages in docs/: their links, and the settings and files that they mention."""

import re

import yaml

from blogapi.config import Config
from tests.cases import cases
from tests.pages import NAMES, Page
from tests.service import CHECKOUT


def test_a_container_is_built_from_exactly_the_files_that_it_copies():
    copied = re.findall(r"^COPY (.+) \S+$", (CHECKOUT / "deploy/Dockerfile").read_text(), re.MULTILINE)
    patterns = " ".join(copied).split()
    allowed = re.findall("^!(.+)$", (CHECKOUT / "deploy/Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert {path.name for pattern in patterns for path in CHECKOUT.glob(pattern)} == {*allowed}


@cases(
    ("name", "fields"),
    ("examples/skill/SKILL.md", {"name", "description"}),
    (".github/ISSUE_TEMPLATE/bug.md", {"name", "about"}),
    (".github/ISSUE_TEMPLATE/idea.md", {"name", "about"}),
)
def test_files_for_other_programs_begin_with_the_front_matter_that_these_need(name, fields):
    begin, front_matter, _ = (CHECKOUT / name).read_text().split("---\n", 2)
    assert begin == ""
    assert fields <= yaml.safe_load(front_matter).keys()


@cases("name", NAMES)
def test_links_lead_to_a_heading(name):
    for target, anchor in Page(name).links:
        path = (CHECKOUT / name).parent / target if target else CHECKOUT / name
        assert path.is_file(), target
        assert not anchor or anchor in Page(path).anchors, f"{target}#{anchor}"


def test_every_page_is_in_the_readme_or_in_one_of_the_first_pages_that_it_lists():
    first = ["docs/write.md", "docs/move.md", "docs/build.md", "docs/run.md"]
    listed = [f"docs/{name}" for page in first for name in re.findall(r"^\* \[.+?\]\((\w.*?)\)", Page(page).text, re.M)]
    assert len(set(listed)) == len(listed)
    linked = {target for target, _ in Page("README.md").links}
    assert {*first, "docs/decisions.md"} <= linked
    assert {name for name in NAMES if name.startswith("docs/")} == {*first, "docs/decisions.md", *listed}


def test_the_pages_name_every_setting():
    rows = re.compile(r"^\| `(HOST|PORT|WEB_CONCURRENCY|BLOGAPI_\w+)` \|", re.MULTILINE)
    settings = rows.findall(Page("docs/settings.md").text)
    assert settings == list(Config.variables()), "edit the table in docs/settings.md"


def test_all_workflows_use_the_same_version_of_an_action():
    files = [*CHECKOUT.glob(".github/workflows/*.yml"), *CHECKOUT.glob("examples/*/.github/workflows/*.yml")]
    texts = [file.read_text() for file in (*files, CHECKOUT / "docs/rebuilding.md")]
    used = {action for text in texts for action in re.findall(r"uses: (\S+)@(v\d+)", text)}
    assert len(files) == 4
    assert len(dict(used)) == len(used) == 6


def test_the_supported_pythons_are_the_same_everywhere():
    named = re.findall(r":: Python :: 3\.(\d+)", (CHECKOUT / "setup.cfg").read_text())
    workflow = re.search(r"python: \[(.+)\]", (CHECKOUT / ".github/workflows/ci.yml").read_text())[1]
    assert workflow == ", ".join(f'"3.{minor}"' for minor in named)
    assert f"Python 3.{named[0]} to 3.{named[-1]}" in Page("README.md").text
    ranges = re.findall(r"MINORS = range\((\d+), (\d+)\)", (CHECKOUT / "requirements/wheels.py").read_text())
    assert ranges == [(named[0], str(int(named[-1]) + 1))]
