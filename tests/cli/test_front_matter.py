"""Front matter from each generator: imported, exported again, and read by YAML 1.1 and 1.2 parsers."""

import tomllib

import pytest
import yaml
from ruamel.yaml import YAML, SafeConstructor

from blogapi.markdown.files import BY_LOWER_CASE
from tests.blogs import SAMPLES
from tests.cli.conftest import stored

FILES = sorted((SAMPLES / "front_matter").iterdir())


class TextDates(SafeConstructor):
    """Reads YAML 1.2, but keeps dates as text."""


TextDates.add_constructor("tag:yaml.org,2002:timestamp", lambda constructor, node: node.value)


def read_as_1_2(text):
    parser = YAML(typ="safe", pure=True)
    parser.Constructor = TextDates
    return parser.load(text)


def front_matter(text):
    """The text of YAML front matter."""
    return text.split("---\n")[1]


def without_null(value):
    if isinstance(value, dict):
        return {name: without_null(each) for name, each in value.items() if each is not None}
    return [without_null(each) for each in value] if isinstance(value, list) else value


def others(values):
    """The values of names unknown to the service."""
    return {name: value for name, value in values.items() if name.lower() not in BY_LOWER_CASE}


def original(file):
    """The content of a file's front matter, with dates as text."""
    text = file.read_text()
    if text.startswith("+++"):
        values = tomllib.loads(text.split("+++\n")[1])
        values["extra"]["at"] = "07:08:09"
        taxonomies = {"series": values["taxonomies"]["series"]}
        return others(values | {"updated": "2023-04-06T07:08:09Z"}) | {"taxonomies": taxonomies}
    return without_null(others(read_as_1_2(front_matter(text))))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_name_in_front_matter_keeps_its_value_and_a_second_import_changes_nothing(run, storage, tmp_path, file):
    assert run("import", "--no-images", file)[1][0].startswith("made 1,")
    before = stored(storage)
    (slug,) = before
    run("export", "--flat", tmp_path / "flat")
    exported = front_matter((tmp_path / "flat" / f"{slug}.md").read_text())
    names = original(file)
    assert len(names) >= 7
    for values in (yaml.safe_load(exported), read_as_1_2(exported)):
        assert "lastmod" in names or values.pop("lastmod")
        if values.get("permalink") is False:  # from a draft
            del values["permalink"]
        assert others(values) | {name: names[name] for name in ("taxonomies",) if name in names} == names
    assert run("import", "--no-images", tmp_path / "flat")[1][0] == "made 0, changed 0, unchanged 1, refused 0"
    assert stored(storage) == before
