"""Zip archives: those that are read, and those that are only named."""

from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile

from blogapi.wings.transfer import folder as archives
from tests.cases import cases
from tests.cli.conftest import LOAF, address, stored

POST = "---\ntitle: A\ndate: 2024-01-02\n---\n![](loaf.jpg)"


def zipped(files):
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return file.getvalue()


def test_an_archive_is_read_like_its_folder_and_a_second_import_changes_nothing(run, storage, write):
    path = write({"blog.zip": zipped({"posts/a.md": POST, "posts/loaf.jpg": LOAF, "../../b.md": POST})}) / "blog.zip"
    status, output, error = run("import", path)
    assert (status, output[0], error) == (0, "made 2, changed 0, unchanged 0, refused 0", [])
    assert stored(storage)["a"]["content"] == f"![]({address(LOAF)})"
    assert not (path.parent.parent / "b.md").exists()
    assert run("import", path)[1][0] == "made 0, changed 0, unchanged 2, refused 0"


def test_a_report_names_files_by_their_paths_in_the_archive(run, storage, write):
    files = {"_config.yml": "title: x", "_posts/a.md": POST, "b.md": "---\n[\n---\n", "c.rst": "C"}
    files["_posts/loaf.jpg"] = b"x"
    path = write({"my blog.zip": zipped(files)}) / "my blog.zip"
    for options in (["--dry-run"], []):
        status, output, error = run("import", *options, path)
        text = "\n".join((*output, *error))
        assert (status, "/tmp" in text.replace(str(path), "")) == (1, False)
        for name in files:
            assert f"{path}/{name}" in text, text


TOO_LARGE = [zipped({"a.md": bytes(10**6)}), zipped(dict.fromkeys("abcd", ""))]


@cases("content", [b"PK\x03\x04", b"", zipped({"a.md": POST})[:-30], *TOO_LARGE])
def test_an_archive_that_is_damaged_or_too_large_is_named(run, storage, write, content, monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    path = write({"blog.zip": content}) / "blog.zip"
    status, output, error = run("import", path)
    assert (status, output, [*stored(storage)]) == (1, ["made 0, changed 0, unchanged 0, refused 1"], [])
    assert error == [f"{path}: not read, because this is an archive: unpack it, and give the folder"]
