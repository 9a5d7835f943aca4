"""The export: a folder with a Markdown file for each post."""

import os

import pytest

from blogapi.markdown.files import render
from blogapi.wings.transfer.export import export
from tests.blogs import run_without_rights
from tests.images.pictures import png

POSTS = [
    {"id": "1", "title": "A", "slug": "a", "status": "draft", "content": "One", "created_at": "2020-01-02T03:04:05Z"},
    {"id": "2", "title": "B", "slug": "b-2", "status": "published", "content": "Two\r\n", "tags": ["x", "y, z"]}
    | {"created_at": "2021-01-02T03:04:05Z", "published_at": "2019-01-02T03:04:05Z"},
]
NO_IMAGES = None  # in place of a database, in which no image is looked for


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "some/blog"


def exported(*arguments, **options):
    """How many files were written, left unchanged and deleted, and why others failed."""
    results = list(export(*arguments, **options).values())
    failed = [result for result in results if result.startswith("cannot")]
    return (*map(results.count, ("written", "unchanged", "deleted")), *failed)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def state(folder):
    return {path.name: (path.stat().st_ino, path.stat().st_ctime_ns) for path in folder.iterdir()}


def test_each_post_becomes_a_file_dated_like_the_post(folder):
    assert exported(POSTS, folder, NO_IMAGES) == (2, 0, 0)
    assert contents(folder) == {"a.md": render(POSTS[0]), "b-2.md": render(POSTS[1])}
    assert [int((folder / name).stat().st_mtime) for name in ("a.md", "b-2.md")] == [1577934245, 1546398245]
    (folder / "other").touch()
    assert (folder / "a.md").stat().st_mode == (folder / "other").stat().st_mode


def test_only_changed_posts_are_written(folder):
    export(POSTS, folder, NO_IMAGES)
    before = state(folder)
    assert exported([POSTS[0] | {"content": "Changed"}, POSTS[1]], folder, NO_IMAGES) == (1, 1, 0)
    assert (folder / "a.md").read_bytes().endswith(b"Changed")
    after = state(folder)
    assert after["a.md"] != before["a.md"]
    assert after == before | {"a.md": after["a.md"]}


def test_a_link_or_a_pipe_is_replaced_and_not_followed(folder, tmp_path):
    folder.mkdir(parents=True)
    (tmp_path / "precious").write_bytes(b"kept")
    (tmp_path / "same").write_bytes(render(POSTS[1]))
    (folder / "a.md").symlink_to(tmp_path / "precious")
    (folder / ".a.md.part").symlink_to(tmp_path / "precious")
    (folder / "b-2.md").symlink_to(tmp_path / "same")
    os.mkfifo(folder / "c.md")
    third = POSTS[0] | {"slug": "c"}
    assert exported([*POSTS, third], folder, NO_IMAGES) == (3, 0, 0)
    assert (tmp_path / "precious").read_bytes() == b"kept"
    assert [path.is_symlink() for path in sorted(folder.iterdir())] == [False] * 3
    assert contents(folder) == {"a.md": render(POSTS[0]), "b-2.md": render(POSTS[1]), "c.md": render(third)}


def test_nothing_is_written_or_deleted_through_a_link_to_another_folder(folder, tmp_path, app, client):
    url = client.post("/v1/images?name=a.png", data=png(), content_type="image/png").json["url"]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    precious = elsewhere / f"{'0' * 32}.png"
    precious.write_bytes(b"kept")
    folder.mkdir(parents=True)
    (folder / "images").symlink_to(elsewhere)
    posts = [POSTS[0] | {"content": f"![]({url})"}]
    written, _, deleted, failed = exported(posts, folder, app.extensions["blogapi"].database, delete=True)
    assert (written, deleted, [*elsewhere.iterdir()]) == (1, 0, [precious])
    assert failed.endswith(f": {folder}/images must be a folder, and not a link")


def test_a_file_in_place_of_the_folder_is_reported(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match=f"^cannot create the folder {tmp_path}/a: File exists$"):
        export(POSTS, tmp_path / "a", NO_IMAGES)


def test_delete_removes_the_files_of_posts_that_are_gone_and_nothing_else(folder, write):
    names = ["sub/b-2.md", "README.md", "f.md", "g.markdown", ".b-2.md", "b_2.md"]
    files = dict.fromkeys(names, render(POSTS[1])) | {"large.md": render(POSTS[0] | {"slug": "large"})}
    files |= {"notes.md": "# Notes", "e.md": "---\ntitle: E\nslug: e\n---\n", "h.md": "---\n", "i.txt": ""}
    write({f"some/blog/{name}": content for name, content in files.items()})
    os.truncate(folder / "large.md", 1024**3)
    (folder / "d.md").mkdir()
    (folder / "b-3.md").symlink_to("f.md")
    not_ours = {path.name for path in folder.iterdir()}
    export(POSTS, folder, NO_IMAGES)
    assert exported(POSTS[:1], folder, NO_IMAGES, delete=True) == (0, 1, 1)
    assert {path.name for path in folder.iterdir()} == {"a.md", *not_ours}
    assert (folder / "sub/b-2.md").exists()


@pytest.mark.slow
def test_an_unreadable_leftover_is_reported_and_the_others_are_removed(folder):
    export([*POSTS, POSTS[0] | {"slug": "c"}], folder, NO_IMAGES)
    (folder / "a.md").chmod(0)
    program = (
        "import sys, pathlib; from blogapi.wings.transfer.export import export\n"
        "print(*export([], pathlib.Path(sys.argv[1]), None, delete=True).values(), sep='\\n')"
    )
    printed = run_without_rights(program, folder)
    assert printed == [f"cannot remove {folder}/a.md: Permission denied", "deleted", "deleted"]
    assert [path.name for path in folder.iterdir()] == ["a.md"]
