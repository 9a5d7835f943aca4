"""Files to read."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Write files below a folder, which is returned."""

    def write_all(files):
        for name, content in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return write_all
