"""`blogapi import`, even of zip archives, and `blogapi export`: their output, and how they affect other clients."""

import fcntl
import re
import signal
import sqlite3
import struct
import subprocess
import termios
from contextlib import closing
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from blogapi.posts import storage as posts
from blogapi.storage.database import Database
from blogapi.storage.models import Author
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.storage import Event
from blogapi.wings.tags import storage as tags
from blogapi.wings.transfer import folder as archives
from blogapi.wings.transfer import importer
from blogapi.wings.transfer.items import Item
from tests.cases import cases
from tests.cli.conftest import LOAF, address, many, stored
from tests.databases import busy, execute
from tests.invariants import sound_posts
from tests.service import BIN, eventually


def test_posts_are_created_in_the_order_of_their_dates_and_updated_now(run, folder, storage):
    run("import", folder(a="---\ndate: 2021-01-01\n---\nA", b="---\ndate: 2020-01-01\n---\nB"))
    made = stored(storage)
    dates = [(slug, post["created_at"]) for slug, post in made.items()]
    assert dates == [("a", "2021-01-01T00:00:00Z"), ("b", "2020-01-01T00:00:00Z")]
    assert all(post["updated_at"] > "2026" for post in made.values())


def test_an_import_calls_webhooks_only_on_request(run, folder, storage, path):
    storage.write(webhooks.add, "http://127.0.0.1:1/", ["post.created", "post.updated", "post.published"])
    for options, slug in (((), "silent"), (("--events",), "told")):
        run("import", *options, folder(**{slug: "A"}))
        run("import", *options, folder(**{slug: "A"}))
        run("import", *options, folder(**{slug: "---\nstatus: published\ntags: a\n---\nA"}))
        types = [row[0] for row in storage.rows(Event.select(Event.type).order_by(Event.id))]
        assert types == (["post.created", "post.updated", "post.published"] if options else [])
        sound_posts(path)


def test_a_damaged_post_is_refused_and_the_others_are_imported(run, folder, path):
    top = folder(a="# A", b="# B")
    run("import", top)
    execute(path, "UPDATE post SET document = '{' WHERE slug = 'a'")
    folder(a="# New", b="# New")
    assert run("import", top) == (1, ["made 0, changed 1, unchanged 0, refused 1"], [f"{top}/a.md: a post is damaged"])


def test_a_reported_post_is_stored_and_the_lock_is_free_meanwhile(storage, path):
    items = [Item(f"{number}.md", {"title": "A", "slug": f"{number}", "content": "A"}, None) for number in range(150)]
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        for number, (outcome, _) in enumerate(importer.store(storage, map(importer.checked, items), events=False), 1):
            assert outcome == "created"
            other.execute("BEGIN IMMEDIATE")
            assert other.execute("SELECT count(*) FROM post").fetchone()[0] >= number
            other.execute("ROLLBACK")


def test_large_posts_are_not_all_held_in_memory(storage):
    read = []

    def items():
        for number in range(10):
            read.append(number)
            yield Item("a.md", {"title": "A", "slug": "a", "content": "A" * 600_000, "tags": []}, None)

    next(importer.store(storage, items(), events=False))
    assert len(read) == 2


def start(*arguments, **options):
    command = [BIN / "blogapi", "import", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_import_leaves_complete_posts_and_can_be_continued(run, folder, storage, number):
    top = many(folder, 1000)
    process = start(top)
    eventually(lambda: len(stored(storage)) > 20, 30)
    process.send_signal(number)
    output, error = process.communicate(timeout=60)
    assert process.returncode == (1 if number == signal.SIGINT else -signal.SIGKILL)
    made = len(stored(storage))
    assert 20 < made < 1000
    if number == signal.SIGINT:
        counted = int(re.fullmatch(r"made (\d+), changed 0, unchanged 0, refused 0\n", output)[1])
        assert made - importer.BATCH_POSTS <= counted <= made  # It may stop between a transaction and its count.
        assert "Traceback" not in error
    assert {(*post["tags"], post["content"][:5]) for post in stored(storage).values()} == {("a", "b", "Words")}
    assert [tags.get(storage, name).posts for name in "ab"] == [made, made]
    assert run("import", top)[1] == [f"made {1000 - made}, changed 0, unchanged {made}, refused 0"]
    assert len(stored(storage)) == 1000


@pytest.mark.slow
def test_it_waits_for_a_busy_database(folder, path):
    with busy(path):
        process = start(folder(a="# A"))
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(4)  # longer than a request waits
    assert process.communicate(timeout=60)[0] == "made 1, changed 0, unchanged 0, refused 0\n"


def test_it_gives_up_on_a_database_that_stays_busy(run, folder, path, monkeypatch):
    monkeypatch.setattr("blogapi.storage.database.PATIENT_SECONDS", 0)
    with busy(path):
        outcome = run("import", folder(a="# A"))
    assert outcome == (1, ["made 0, changed 0, unchanged 0, refused 0"], ["database is locked"])


@pytest.mark.slow
def test_a_stopped_terminal_holds_no_transaction_open(folder, path):
    top = folder(good="# A", **{f"{'x' * 200}-{number}": "---\n" for number in range(500)})
    process = start(top)  # nobody reads its errors

    def unread():
        return struct.unpack("i", fcntl.ioctl(process.stderr, termios.FIONREAD, bytes(4)))[0]

    eventually(lambda: unread() > 60_000, 30)
    with busy(path):
        pass
    assert process.poll() is None
    output, error = process.communicate(timeout=60)
    assert (output, len(error.splitlines())) == ("made 1, changed 0, unchanged 0, refused 500\n", 500)


def test_a_running_server_shows_imported_posts_and_keeps_writing(service, folder):
    top = many(folder, 200)
    process = start(top, env=service.environ)
    created = 0
    while process.poll() is None:
        assert service.request("POST", "/v1/posts", {"title": "A", "content": "B"})[0] == 201
        created += 1
    assert process.communicate()[0] == "made 200, changed 0, unchanged 0, refused 0\n"
    assert len(sound_posts(service.database)) == 200 + created
    assert service.request("GET", "/v1/posts/by-slug/post-00199")[2]["content"] == "Words 199.\n"


def test_every_post_is_exported_and_a_second_export_writes_nothing(run, folder, tmp_path, path):
    run("import", many(folder, 120))
    assert run("export", tmp_path / "out") == (0, ["written 120, unchanged 0, deleted 0"], [])
    assert run("export", tmp_path / "out") == (0, ["written 0, unchanged 120, deleted 0"], [])
    assert len(list((tmp_path / "out").iterdir())) == 120
    execute(path, "DELETE FROM post WHERE slug = 'post-00007'")
    assert run("export", tmp_path / "out")[1] == ["written 0, unchanged 119, deleted 0"]
    assert run("export", tmp_path / "out", "--delete")[1] == ["written 0, unchanged 119, deleted 1"]
    assert not (tmp_path / "out/post-00007.md").exists()


def test_a_file_that_cannot_be_written_is_named_and_counted(run, folder, tmp_path):
    run("import", folder(a="# A", b="# B"))
    (tmp_path / "out/a.md").mkdir(parents=True)
    errors = [f"cannot write {tmp_path}/out/a.md: Is a directory"]
    assert run("export", tmp_path / "out") == (1, ["written 1, unchanged 0, deleted 0, failed 1"], errors)


def test_a_scheduled_post_that_is_due_is_exported_as_published(run, storage, tmp_path):
    fields = {"title": "A", "content": "B", "tags": [], "status": "scheduled", "published_at": "2020-10-01T00:00:00Z"}
    Database(storage.engine, lambda: 1_600_000_000).write(posts.add, fields, Author("tests"))
    assert stored(storage)["a"]["status"] == "scheduled"
    run("export", tmp_path)
    assert "\nstatus: published\n" in (tmp_path / "a.md").read_text()


def test_a_damaged_post_is_named_and_its_file_is_kept(run, folder, path, tmp_path):
    run("import", folder(a="# A", b="# B", c="# C"))
    run("export", tmp_path / "out")
    execute(path, "UPDATE post SET document = '{' WHERE slug IN ('a', 'c')")
    (tmp_path / "out/b.md").unlink()
    damaged = "these posts are damaged: 3, 1; all others were read"
    assert run("export", tmp_path / "out", "--delete") == (1, [], [damaged])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a.md", "b.md", "c.md"]


OLD = "---\ndate: 2020-01-01\naliases: [/old/, /b/, /taken/]\n---\nA"


def test_twenty_older_addresses_become_former_slugs_unless_they_belong_to_other_posts(run, folder, storage):
    run("import", "--publish", folder(taken="---\ndate: 2019-01-01\n---\nA"))
    many = "".join(f"- /p{number}/\n" for number in range(25))
    dated = "---\ndate: 2020-01-0{}\naliases:\n{}---\nB"
    top = folder(a=OLD, b=dated.format(2, "- /old/\n"), m=dated.format(3, many))
    left = f"Former slugs dropped from 3 posts ({top}/a.md, {top}/b.md, {top}/m.md): "
    left += "another post has or had them, or there are over 20."
    assert "would be made 3, changed 0, unchanged 1, refused 0" in run("import", "--publish", "--dry-run", top)[1]
    for outcome in ("made 3, changed 0, unchanged 1, refused 0", "made 0, changed 0, unchanged 4, refused 0"):
        status, lines, _ = run("import", "--publish", top)
        assert (status, lines[0], left in lines) == (0, outcome, True)
    found = {slug: post.get("former_slugs") for slug, post in stored(storage).items()}
    assert found == {"m": [f"p{number}" for number in range(20)], "b": None, "a": ["old"], "taken": None}
    storage.write(posts.change, "a", {"slug": "c"}, Author("tests"))
    storage.write(posts.change, "c", {"slug": "a"}, Author("tests"))
    assert run("import", "--publish", top)[1][0] == "made 0, changed 0, unchanged 4, refused 0"
    assert stored(storage)["a"]["former_slugs"] == ["c", "old"]


def test_a_file_with_an_old_name_neither_creates_nor_renames_a_post(run, folder, storage):
    top = folder(a="---\ndate: 2020-01-01\n---\nA")
    run("import", "--publish", top)
    storage.write(posts.change, "a", {"slug": "b"}, Author("tests"))
    told = f"{top}/a.md: slug: post 1 used to have this slug; its slug is now b"
    for options in (["--publish"], ["--publish", "--dry-run"]):
        status, lines, errors = run("import", *options, top)
        assert (status, lines[0].endswith("made 0, changed 0, unchanged 0, refused 1"), errors) == (1, True, [told])
    assert list(stored(storage)) == ["b"]


def test_an_export_includes_former_slugs(run, folder, storage, tmp_path):
    run("import", folder(a=OLD))
    for options in ([], ["--flat"]):
        run("export", *options, str(tmp_path / "out"))
        assert "former_slugs: [old, b, taken]\n" in (tmp_path / "out/a.md").read_text()
        assert run("import", str(tmp_path / "out"))[1][0] == "made 0, changed 0, unchanged 1, refused 0"
        storage.write(posts.delete, "a", Author("tests"), permanent=True)
        run("import", str(tmp_path / "out"))
        assert stored(storage)["a"]["former_slugs"] == ["old", "b", "taken"]


def test_an_export_for_other_programs_comes_back_as_the_same_posts(run, folder, storage, tmp_path):
    statuses = {"a": "published", "b": "draft", "c": "archived", "d": "scheduled"}
    years = dict.fromkeys("abc", 2020) | {"d": 2099}
    head = "---\nstatus: {}\npublished_at: {}-01-02\n---\nA"
    run("import", folder(**{slug: head.format(status, years[slug]) for slug, status in statuses.items()}))
    run("export", "--flat", tmp_path / "out")
    exported = stored(storage)
    for slug in exported:
        storage.write(posts.delete, slug, Author("tests"), permanent=True)
    assert run("import", tmp_path / "out")[1] == ["made 4, changed 0, unchanged 0, refused 0"]
    for slug, post in stored(storage).items():
        assert post | {"id": exported[slug]["id"], "updated_at": exported[slug]["updated_at"]} == exported[slug]


def test_times_are_in_the_zone_of_the_service(run, folder, storage, monkeypatch):
    monkeypatch.setenv("BLOGAPI_TIMEZONE", "Asia/Tokyo")
    run("import", folder(a="---\ndate: 2020-01-02 08:00\n---\nA", b="---\ndate: 2020-01-02T08:00:00Z\n---\nA"))
    times = {slug: post["published_at"] for slug, post in stored(storage).items()}
    assert times == {"a": "2020-01-01T23:00:00Z", "b": "2020-01-02T08:00:00Z"}


POST = "---\ntitle: A\ndate: 2024-01-02\n---\n![](loaf.jpg)"


def zipped(files, *more):
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, content in (*files.items(), *more):
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
    link = ZipInfo("link.md")
    link.external_attr = 0o120777 << 16
    with pytest.warns(UserWarning, match="Duplicate name: '_posts/a.md'"):
        path = write({"my blog.zip": zipped(files, (link, "b.md"), ("_posts/a.md", POST))}) / "my blog.zip"
    for options in (["--dry-run"], []):
        status, output, error = run("import", *options, path)
        text = "\n".join((*output, *error))
        assert (status, "/tmp" in text.replace(str(path), "")) == (1, False)
        for name in files:
            assert f"{path}/{name}" in text, text
        assert f"Not imported: 1 file with the same name as a later one ({path}/_posts/a.md)." in output
        assert f"Not imported: 1 link in an archive ({path}/link.md)." in output


TOO_LARGE = "the limits are 3 files and {:,} bytes; import a folder instead"


@cases(
    ("content", "why"),
    (b"PK\x03\x04", "File is not a zip file"),
    (b"", "File is not a zip file"),
    (zipped({"a.md": POST})[:-30], "File is not a zip file"),
    (zipped({"a.md": POST}).replace(b"a.md", b"b.md", 1), "File name in directory 'a.md' and header b'b.md' differ."),
    (zipped({"a.md": bytes(10**6)}), TOO_LARGE),
    (zipped(dict.fromkeys("abcd", "")), TOO_LARGE),
)
def test_an_archive_that_is_damaged_or_too_large_is_named(run, storage, write, content, why, monkeypatch):
    monkeypatch.setattr(archives, "MAX_FILES", 3)
    path = write({"blog.zip": content}) / "blog.zip"
    status, output, error = run("import", path)
    assert (status, output, [*stored(storage)]) == (1, ["made 0, changed 0, unchanged 0, refused 1"], [])
    assert error == [f"{path}: cannot be read: {why.format(200 * len(content))}"]
