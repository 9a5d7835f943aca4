"""Fixtures that write and read files."""

from functools import partial

import pytest

from tests.blogs import read, write_files


@pytest.fixture
def write(tmp_path):
    """Write files below a folder; return it."""
    return partial(write_files, tmp_path)


@pytest.fixture
def item(write):
    """Read a file with this front matter and name, below a folder."""

    def read_one(text, name="a.md", content="Words.", **options):
        (item,) = read(write({name: f"---\n{text}\n---\n\n{content}"}), **options)
        return item

    return read_one
