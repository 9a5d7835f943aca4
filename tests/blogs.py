"""The sample blogs, and how the tests read folders and exports."""

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from blogapi.wings.transfer import exclusions, inherited, sites
from blogapi.wings.transfer.sources import Sources
from tests.service import without_rights

SAMPLES = Path(__file__).parent / "samples"
CACHED = (sites.roots_of, sites.site_of, sites.names_in, inherited._from_folder, exclusions._exclusions)
NOON = 1_795_176_000  # 2026-11-20T12:00:00Z


def write_files(top, files):
    """Write files below a folder; return it. Clear the caches, because several tests have folders of the same name."""
    for read in CACHED:
        read.cache_clear()
    top.mkdir(exist_ok=True)
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return top


@contextmanager
def open_sources(*paths, now=NOON, publish=True, **options):
    with TemporaryFile() as spool:
        yield Sources(paths, spool, now=now, publish=publish, **options)


def read(*paths, **options):
    with open_sources(*paths, **options) as sources:
        items = list(sources)
        assert len(sources) == len(items)
    return items


def slugs_in(path):
    """The slugs of the posts in a file, read without keeping more than one post in memory."""
    with open_sources(path) as sources:
        return [item.fields["slug"] for item in sources]


def run_without_rights(program, *arguments):
    """The lines that a program prints when run by a user who cannot read everything."""
    command = without_rights(sys.executable, "-c", program, *arguments)
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
