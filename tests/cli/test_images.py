"""`blogapi images`, and images in backups and copies."""

from datetime import timedelta

import pytest
from click.testing import CliRunner

from blogapi.cli import command_line
from blogapi.clock import earlier
from blogapi.engines import engine_for
from blogapi.posts import storage as posts
from blogapi.storage.database import Database
from blogapi.storage.models import Author
from blogapi.wings.images import storage as images
from blogapi.wings.images.storage import StoredImage

CONTENT = b"a" * images.PART_BYTES + b"b"


@pytest.fixture
def add(storage):
    """Write an image that was uploaded some days ago."""

    def add(number, days=2):
        upload, name = f"{storage.now}_{number}", f"{number}\u202e.jpg"
        image = StoredImage(f"{number:032x}", upload, name, "image/jpeg", len(CONTENT), 1, 1, "")
        for part in range(2):
            begin = part * images.PART_BYTES
            storage.write(images.add_part, upload, part, CONTENT[begin : begin + images.PART_BYTES])
        storage.write(images.add, image)
        created_at = earlier(storage.now, timedelta(days=days))
        made_older = images.Image.update(created_at=created_at).where(images.Image.id == image.id)
        storage.write(lambda tx: tx.execute(made_older))
        return f"{image.id}     262,145  {created_at}  {number}\ufffd.jpg"  # would reverse the text

    return add


def test_images_are_listed_newest_first_and_unused_ones_are_deleted_after_a_day(run, storage, add):
    used, unused, new = add(1, days=3), add(2), add(3, days=0)
    fields = {"title": "A", "content": f"![](/images/{1:032x}.jpg)", "tags": [], "status": "draft"}
    storage.write(posts.add, fields, Author(""))
    assert run("images") == (0, [new, unused, used], [])
    assert run("images", "--unused") == (0, [unused], [])
    assert run("images", "--unused", "--delete") == (0, [unused], [])
    assert run("images") == (0, [new, used], [])
    assert images.total_bytes(storage) == 2 * len(CONTENT)


def test_with_a_damaged_post_no_image_counts_as_unused(run, storage, add, damage):
    image = add(1)
    storage.write(posts.add, {"title": "A", "content": "B", "tags": [], "status": "draft"}, Author(""))
    damage("post", "document", None)
    result = CliRunner().invoke(command_line, ["images", "--unused", "--delete"])
    assert (str(result.exception), result.stdout) == ("a post is damaged", "")
    assert run("images") == (0, [image], [])


def test_a_backup_and_a_copy_contain_images(run, add, tmp_path):
    add(1)
    for command in ("backup", "copy"):
        path = tmp_path / f"{command}.db"
        assert run(command, path)[0] == 0
        engine = engine_for(path)
        engine.open(create=False)
        database = Database(engine)
        image = images.find(database, f"{1:032x}")
        assert b"".join(images.read(database, image, 0, image.bytes)) == CONTENT
        engine.close()
