"""Images in exports: which files are written, and how an import reads them back."""

import pytest

from tests.cli.conftest import COVER, LOAF, OVEN, RYE, URL, address, image_of, kept


@pytest.fixture
def blog(run, write):
    """An imported blog with images in all fields."""
    front = "---\nslug: a\ntitle: A\ndate: 2020-01-02\ncover: cover.gif\n---\n"
    content = "![A loaf](loaf.jpg) and ![[rye.png]]\n\n[oven]: oven.webp\n"
    files = {"a.md": front + content, "loaf.jpg": LOAF, "rye.png": RYE, "oven.webp": OVEN, "cover.gif": COVER}
    run("import", write(files))


def files_in(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def kept_of(*contents):
    return {image_of(each).path.rpartition("/")[2]: kept(each) for each in contents}


def test_an_export_contains_the_images_in_use_keeps_their_addresses_and_replaces_damaged_files(
    run, storage, blog, tmp_path
):
    out = tmp_path / "out"
    lines = ["written 1, unchanged 0, deleted 0", "images: written 4, unchanged 0, deleted 0"]
    assert run("export", out) == (0, lines, [])
    assert files_in(out / "images") == kept_of(LOAF, RYE, OVEN, COVER)
    assert address(LOAF) in (out / "a.md").read_text()
    before = {path: path.stat() for path in out.rglob("*")}
    lines = ["written 0, unchanged 1, deleted 0", "images: written 0, unchanged 4, deleted 0"]
    assert (run("export", out)[1], {path: path.stat() for path in out.rglob("*")}) == (lines, before)
    image = out / "images" / image_of(LOAF).path.rpartition("/")[2]
    image.write_bytes(image.read_bytes()[:-1] + b"x")
    assert run("export", out)[1][1] == "images: written 1, unchanged 3, deleted 0"
    assert files_in(out / "images") == kept_of(LOAF, RYE, OVEN, COVER)


@pytest.mark.parametrize("name", ["blog", "images"])
def test_delete_removes_unused_images_and_nothing_else(run, storage, blog, tmp_path, write, name):
    out = tmp_path / name
    run("export", out)
    (out / "images/notes.txt").write_text("mine")
    (out / "images/photo.jpg").write_bytes(LOAF)
    (out / f"{'0' * 32}.jpg").write_bytes(LOAF)
    (out / "images" / f"{'1' * 32}.jpg").symlink_to("photo.jpg")
    others = {"notes.txt", "photo.jpg", f"{'1' * 32}.jpg"}
    (tmp_path / "blog/a.md").write_text("---\nslug: a\n---\n![](loaf.jpg)")
    run("import", tmp_path / "blog/a.md")
    assert run("export", out)[1][1] == "images: written 0, unchanged 1, deleted 0"
    assert run("export", out, "--delete")[1][1] == "images: written 0, unchanged 1, deleted 3"
    assert {path.name for path in (out / "images").iterdir()} == {*kept_of(LOAF), *others}
    assert (out / f"{'0' * 32}.jpg").exists()


def test_a_standalone_export_needs_no_server(run, storage, blog, tmp_path):
    run("export", tmp_path / "out", "--standalone")
    text = (tmp_path / "out/a.md").read_text()
    assert URL not in text
    loaf, rye, oven, cover = (image_of(each).path[1:] for each in (LOAF, RYE, OVEN, COVER))
    assert f"\ncover_image: {cover}\n" in text
    assert text.endswith(f"\n![A loaf]({loaf}) and ![rye]({rye})\n\n[oven]: {oven}\n")


@pytest.mark.parametrize(
    ("options", "url"),
    [([], URL), ([], "https://new.example"), (["--standalone"], "https://new.example/blog")],
    ids=["same address", "new address", "standalone"],
)
def test_an_export_is_read_back_under_any_address(run, blog, write, tmp_path, monkeypatch, options, url):
    texts = f"excerpt: See {address(OVEN)}\nparams: {{hero: '{address(COVER)}', all: [{{one: '{address(LOAF)}'}}, 2]}}"
    content = f"[B]({address(LOAF)}) `{address(RYE)}`"
    assert run("import", write({"b.md": f"---\nslug: b\n{texts}\n---\n{content}"}) / "b.md")[0] == 0
    run("export", tmp_path / "out")
    run("export", tmp_path / "given", *options)
    monkeypatch.setenv("BLOGAPI_DATABASE", str(tmp_path / "other.db"))
    monkeypatch.setenv("BLOGAPI_URL", url)
    assert run("init")[0] == 0
    for made in ("made 2, changed 0, unchanged 0, refused 0", "made 0, changed 0, unchanged 2, refused 0"):
        assert run("import", tmp_path / "given")[1][0] == made
    run("export", tmp_path / "again")
    before, after = files_in(tmp_path / "out"), files_in(tmp_path / "again")
    assert after == {name: data.replace(URL.encode(), url.encode()) for name, data in before.items()}
    assert files_in(tmp_path / "again/images") == kept_of(LOAF, RYE, OVEN, COVER)
