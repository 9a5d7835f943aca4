"""Images in imports: which the import finds, and which URLs they get."""

import json
import os
from random import Random

from PIL.Image import frombytes

from blogapi.wings.images import storage as images
from blogapi.wings.images.storage import Image, ImagePart
from tests.cases import cases
from tests.cli.conftest import COVER, LOAF, RYE, URL, address, image_of, kept, stored
from tests.images.pictures import SECRET, png


def names(storage):
    return sorted(image.name for image in images.page(storage, 100).items)


def imported(run, storage, write, content, files, *options, name="a.md"):
    """The content of a post that was imported with these images."""
    top = write({name: f"---\nslug: a\ntitle: A\n---\n{content}", **files})
    status, output, error = run("import", top, *options)
    assert (status, error) == (0, []), output
    return stored(storage)["a"]["content"]


@cases(
    ("content", "expected"),
    ("![A loaf](loaf.jpg)", "![A loaf]({})"),
    ("![](./loaf.jpg)", "![]({})"),
    ('![A](loaf.jpg "Fresh")', '![A]({} "Fresh")'),
    ("![A](pics/my%20loaf.jpg)", "![A]({})"),
    ("![A](<pics/my loaf.jpg>)", "![A](<{}>)"),
    ("![A](pics/loaf%20(1).jpg) and (more)", "![A]({}) and (more)"),
    ("![A](loaf.jpg?w=300#top)", "![A]({})"),
    ("[![A](loaf.jpg)](https://a.example)", "[![A]({})](https://a.example)"),
    ("![A][loaf]\n\n[loaf]: loaf.jpg 'Fresh'", "![A][loaf]\n\n[loaf]: {} 'Fresh'"),
    ('<img alt="A" src="pics/my loaf.jpg">', '<img alt="A" src="{}">'),
    ("<IMG SRC=loaf.jpg width=3>", "<IMG SRC={} width=3>"),
    ("![[loaf.jpg]]", "![loaf]({})"),
    ("![[Loaf.JPG|300]]", "![Loaf]({})"),
    ("![[loaf.jpg|300x200]] ![[pics/my loaf.jpg|A loaf]]", "![loaf]({}) ![A loaf]({})"),
)
def test_an_image_next_to_the_file_is_stored_and_the_link_points_to_it(run, storage, write, content, expected):
    files = {"loaf.jpg": LOAF, "pics/my loaf.jpg": LOAF, "pics/loaf (1).jpg": LOAF}
    assert imported(run, storage, write, content, files) == expected.replace("{}", address(LOAF))
    image = images.get(storage, image_of(LOAF).id)
    assert b"".join(images.read(storage, image, 0, image.bytes)) == kept(LOAF)
    assert SECRET not in kept(LOAF)


@cases(
    "content",
    [
        "`![A](loaf.jpg)`",
        "```\n![A](loaf.jpg)\n![[loaf.jpg]]\n```",
        "![A](https://a.example/loaf.jpg)",
        "![A](//a.example/loaf.jpg)",
        "![A](/none.jpg)",
        "![A](data:image/png;base64,AA)",
        "![A](none.jpg) ![[none.jpg]] ![[two.jpg]]",
        "![A](a%00.jpg) ![B](" + "x" * 300 + ") ![](pics)",
        "[A](loaf.jpg)",
    ],
)
def test_other_addresses_do_not_change(run, storage, write, content):
    files = {"loaf.jpg": LOAF, "pics/two.jpg": LOAF, "more/two.jpg": RYE}
    assert (imported(run, storage, write, content, files), names(storage)) == (content, [])


def test_no_file_outside_the_folders_is_read(run, storage, write, tmp_path):
    (tmp_path / "secret.jpg").write_bytes(LOAF)
    top = write({"in/loaf.jpg": LOAF})
    (top / "in/linked.jpg").symlink_to(tmp_path / "secret.jpg")
    (top / "in/out").symlink_to(tmp_path)
    content = f"![](../secret.jpg) ![](linked.jpg) ![](out/secret.jpg) ![](../../secret.jpg) ![]({tmp_path}/secret.jpg)"
    (top / "in/a.md").write_text(content)
    status, (_, said, *_), _ = run("import", top / "in", "--static", top / "in")
    assert (status, said, stored(storage)["a"]["content"]) == (0, "images: new 0, already stored 0, missing 5", content)


def test_neither_a_missing_path_nor_an_export_gives_access_to_its_folder(run, storage, write):
    row = {"id": 1, "title": "B", "slug": "b", "feature_image": "__GHOST_URL__/content/images/../../loaf.jpg"}
    row |= {"html": "<p>B</p>"}
    top = write({"loaf.jpg": LOAF, "ghost.json": json.dumps({"data": {"posts": [row]}}), "content/images/x.gif": COVER})
    write({"in/a.md": "![](../loaf.jpg)", "secret.md": "Secret"})
    (top / "in/linked.md").symlink_to(top / "secret.md")
    run("import", top / "in", top / "typo.md", top / "ghost.json", "--static", top / "content/images")
    assert (stored(storage).keys(), names(storage)) == ({"a", "b"}, [])


def test_an_image_may_be_in_another_given_folder(run, storage, write):
    top = write({"posts/a.md": "![A](../assets/loaf.jpg)", "assets/loaf.jpg": LOAF})
    run("import", top / "posts", "--static", top / "assets")
    assert stored(storage)["a"]["content"] == f"![A]({address(LOAF)})"


@cases(
    ("folder", "written"),
    ("static", "/img/loaf.jpg"),
    ("static", "https://old.example/img/loaf.jpg?x=1"),
    ("static", "//old.example/img/loaf.jpg"),
    ("wp-content", "https://old.example/wp-content/uploads/2020/loaf.jpg"),
    ("site/content/images", "/content/images/2020/loaf.jpg"),
    (".", "/assets/loaf.jpg"),
)
def test_addresses_from_the_root_are_found_in_the_static_folder(run, storage, write, tmp_path, folder, written):
    folders = "static/img", "wp-content/uploads/2020", "site/content/images/2020", "assets"
    files = {f"{each}/loaf.jpg": LOAF for each in folders}
    static = tmp_path / "blog" / folder
    content = imported(run, storage, write, f"![A]({written})", files, "--static", static, name="_posts/a.md")
    assert content == f"![A]({address(LOAF)})"


def test_addresses_from_the_root_are_found_in_the_folder_of_a_site(run, storage, write):
    files = {"loaf.jpg": LOAF, "static/img/rye.png": RYE, "public/a/loaf.jpg": LOAF, "posts/other/loaf.jpg": LOAF}
    content = "![](/loaf.jpg) ![](/img/rye.png) ![](/a/loaf.jpg) ![](/other/loaf.jpg) ![](/../loaf.jpg)"
    loaf, rye = address(LOAF), address(RYE)
    made = f"![]({loaf}) ![]({rye}) ![]({loaf}) ![](/other/loaf.jpg) ![]({loaf})"
    assert imported(run, storage, write, content, files, name="posts/a.md") == made


def test_a_cover_is_stored_too(run, storage, write):
    top = write({"a.md": "---\ncover: ./pics/loaf.jpg\n---\nA", "b.md": "---\nimage: /rye.png\n---\nB"})
    write({"pics/loaf.jpg": LOAF, "static/rye.png": RYE})
    output = run("import", top, "--static", top / "static")[1]
    assert output[:2] == ["made 2, changed 0, unchanged 0, refused 0", "images: new 2, already stored 0, missing 0"]
    assert {post["cover_image"] for post in stored(storage).values()} == {address(LOAF), address(RYE)}


def test_images_of_a_ghost_export_are_found(run, storage, write):
    row = {"id": 1, "title": "A", "slug": "a", "feature_image": "__GHOST_URL__/content/images/c.gif"}
    row |= {"html": '<p><img src="__GHOST_URL__/content/images/2020/loaf.jpg" alt="Loaf"></p>'}
    top = write({"ghost.json": json.dumps({"data": {"posts": [row]}})})
    write({"content/images/2020/loaf.jpg": LOAF, "content/images/c.gif": COVER})
    run("import", top / "ghost.json", "--static", top / "content/images")
    post = stored(storage)["a"]
    assert (post["content"], post["cover_image"]) == (f"![Loaf]({address(LOAF)})\n", address(COVER))


def test_a_second_import_changes_nothing_and_images_are_stored_once(run, storage, write):
    files = {"loaf.jpg": LOAF, "same.jpg": LOAF, "b.md": "# B\n![](loaf.jpg)", "gone.md": "# C\n![](gone.png)"}
    imported(run, storage, write, "![](loaf.jpg) ![](same.jpg)", files)
    before = stored(storage)
    status, output, _ = run("import", write({}))
    assert status == 0
    assert output[:2] == ["made 0, changed 0, unchanged 3, refused 0", "images: new 0, already stored 2, missing 1"]
    assert (stored(storage), names(storage)) == (before, ["loaf.jpg"])


def test_a_dry_run_says_what_would_be_stored_and_stores_nothing(run, storage, write):
    top = write({"a.md": "![](loaf.jpg)", "loaf.jpg": LOAF})
    output = run("import", "--dry-run", top)[1]
    assert output[0] == f"{top}/a.md: would be created: a; draft; images 1; titles from names"
    assert output[2] == "images: new 1, already stored 0, missing 0"
    assert list(storage.rows(Image.select(Image.id))) == list(storage.rows(ImagePart.select(ImagePart.number))) == []
    assert stored(storage) == {}


def test_the_option_no_images_leaves_links_as_they_are(run, storage, write):
    content = imported(run, storage, write, "![](loaf.jpg) ![[loaf.jpg]]", {"loaf.jpg": LOAF}, "--no-images")
    assert (content, names(storage)) == ("![](loaf.jpg) ![[loaf.jpg]]", [])


def test_a_file_that_is_not_an_image_is_reported_and_its_link_stays(run, storage, write):
    files = {f"{name}.svg": "<svg/>" for name in "abcde"} | {"cut.jpg": LOAF[:300], "big.png": b""}
    content = " ".join(f"![]({name})" for name in files)
    top = write(files | {"a.md": content})
    os.truncate(top / "big.png", 1024**3)
    status, output, error = run("import", top)
    assert (status, output[1]) == (0, "images: new 0, already stored 0, missing 7")
    assert stored(storage)["a"]["content"] == content
    assert error == [
        f"{top}/a.svg, {top}/b.svg, {top}/c.svg and 2 more: "
        "must be a JPEG, PNG, GIF, WebP or AVIF image; an SVG can run scripts",
        f"{top}/cut.jpg: the file ends early",
        f"{top}/big.png: must have at most 20 MiB",
    ]


def test_a_post_whose_images_do_not_fit_is_refused(run, storage, write, monkeypatch):
    monkeypatch.setenv("BLOGAPI_IMAGES_MB", "0")
    top = write({"a.md": "![](loaf.jpg)", "b.md": "B", "loaf.jpg": LOAF})
    reason = "the images would exceed BLOGAPI_IMAGES_MB"
    assert run("import", top)[::2] == (1, [f"{top}/a.md: its image {top}/loaf.jpg: {reason}"])
    assert ([*stored(storage)], names(storage)) == (["b"], [])


def test_a_dry_run_predicts_that_images_will_not_fit(run, storage, write, monkeypatch):
    monkeypatch.setenv("BLOGAPI_IMAGES_MB", "1")
    one, two = (png(frombytes("RGB", (500, 400), Random(seed).randbytes(600_000))) for seed in (1, 2))
    top = write({"a.md": "![](a.png) ![](b.png)", "a.png": one, "b.png": one, "b.md": "![](c.png)", "c.png": two})
    for options in (["--dry-run"], []):
        status, output, errors = run("import", *options, top)
        assert (status, errors[0].split(": ")[0]) == (1, f"{top}/b.md")
        assert "images: new 1, already stored 1, missing 0" in output


def test_images_in_params_in_liquid_and_with_decomposed_names_are_stored(run, write, tmp_path):
    front = "coverImage: b.png\nheader: {teaser: c.png}\nresources: [{src: d.png}]\nother: gone.png"
    content = "![a]({{ site.baseurl }}/e.png) ![a]({{ '/e.png' | relative_url }}) ![a]({{ gone }}) ![a](f\u00e9.png)"
    files = {"a.md": f"---\n{front}\n---\n{content}"} | dict.fromkeys(("b.png", "c.png", "d.png", "e.png"), png())
    output = run("import", write(files | {"fe\u0301.png": png()}), "--static", tmp_path / "blog")[1]
    assert output[1] == "images: new 1, already stored 4, missing 2"
    assert any(line.startswith("Images named in params but not found in 1 post") for line in output)
    run("export", tmp_path / "out")
    text = (tmp_path / "out/a.md").read_text()
    assert (text.count("/images/"), text.count("gone")) == (7, 2)  # The cover is b.png, too.


def test_missing_images_of_refused_posts_are_not_counted(run, write):
    refused = "---\npublished: gone\n---\n![](b.png)"
    output = run("import", write({"a.md": refused, "b.md": "![](c.png)"}))[1]
    assert "images: new 0, already stored 0, missing 1" in output


def test_a_picture_with_a_damaged_color_profile_is_stored_without_it(run, write):
    whole = png()
    damaged = whole[:33] + b"\0\0\0\3iCCPabc\0\0\0\0" + whole[33:]
    output = run("import", write({"a.md": "![](a.png) ![](b.png)", "a.png": damaged, "b.png": whole}))[1]
    assert output[1] == "images: new 1, already stored 1, missing 0"


def test_an_image_address_of_the_service_that_has_no_image_is_reported(run, storage, write):
    lost = f"{URL}/images/{'0' * 32}.jpg"
    folder = write({"a.md": f"# A\n\n![]({lost})"})
    told = f"Images missing from this service in 1 post ({folder}/a.md): an export of their blog contains them."
    assert run("import", folder)[1][1:] == ["images: new 0, already stored 0, missing 1", told]
