"""Push and pull after a backup of the database was restored, and races with people who edit files."""

import time
from functools import partial

import pytest

from blogapi.wings.sync.client import Remote
from tests.images.pictures import png
from tests.service import Server, eventually
from tests.sync.conftest import command_runner, contents, edit, next_second, record, restore_backup, take_backup


@pytest.fixture
def restored(tmp_path, monkeypatch):
    """Return a service of its own, and functions that run a command, take a backup and restore it."""
    with Server(tmp_path / "blog.db") as service:
        backup = tmp_path / "backup.db"

        yield (
            service,
            command_runner(service, monkeypatch),
            partial(take_backup, service, backup),
            partial(restore_backup, service, backup),
        )


def texts(folder):
    return "".join(map(bytes.decode, contents(folder).values()))


@pytest.mark.slow
def test_the_only_copy_of_a_text_survives_the_restoring_of_a_backup(restored, folder):
    service, run, take, restore = restored
    here = folder(a="# A\n", b="# B\n")
    run("push", here)
    take()
    edit(here / "a.md", "# A", "# A, only here")
    folder(c="# C, only here\n")
    run("push", here)
    restore()
    assert run("pull", here)[0] == 2
    service.request("PATCH", "/v1/posts/by-slug/a", {"excerpt": "Changed after that."})
    other = service.request("POST", "/v1/posts", {"title": "Other", "content": "It gets the id of c."})[2]
    folder(d="# D\n")
    status, lines = run("push", here)  # What it records is newer, and proves nothing.
    assert status == 2
    assert [line for line in lines if line.startswith("conflict a.md: its post went back to an earlier version, ")]
    for arguments in ((), ("--delete",), ("--theirs",)):
        assert run("pull", here, *arguments)[0] == 2
        assert {"A, only here", "C, only here"} <= {line[2:] for line in texts(here).splitlines()}
    assert "your version is now a.mine.md" in run("pull", here, "--theirs")[1][0] or (here / "a.mine.md").exists()
    run("push", here, "--recreate")
    posts = {post["slug"]: post for post in service.request("GET", "/v1/posts")[2]}
    assert (posts["c"]["content"], posts["other"]["id"]) == ("# C, only here\n", other["id"])


@pytest.mark.slow
def test_the_history_shows_that_a_changed_post_descends_from_the_recorded_one(restored, folder):
    service, run, take, restore = restored
    here = folder(a="# A\n\nOne.\n")
    run("push", here)
    take()
    restore()
    service.request("PATCH", "/v1/posts/by-slug/a", {"content": "# A\n\nTwo.\n"})
    assert run("pull", here)[1][0] == "updated a.md"
    assert "Two." in texts(here)


@pytest.mark.slow
def test_a_key_that_cannot_read_the_history_overwrites_nothing_after_a_restored_backup(restored, tmp_path):
    service, run, take, restore = restored
    key, here = service.blogapi("keys", "create", "site", "--published-only").stdout.strip(), tmp_path / "here"

    def put(slug, content):
        next_second()
        service.request("PUT", f"/v1/posts/by-slug/{slug}", {"title": slug, "content": content, "status": "published"})

    put("a", "One.\n")
    put("b", "One.\n")
    run("pull", here, key=key)
    put("b", "Two.\n")
    assert run("pull", here, key=key)[1][0] == "updated b.md"  # Without a restored backup, the last one can change.
    take()
    put("b", "Only here.\n")
    put("c", "Later.\n")
    run("pull", here, key=key)
    restore()
    put("b", "Three.\n")
    status, lines = run("pull", here, key=key)
    assert (status, lines[0].partition(", as if")[0]) == (2, "conflict b.md: its post went back to an earlier version")
    assert "Only here." in texts(here)


def test_a_post_is_a_conflict_if_its_history_no_longer_reaches_back(run, synced, change):
    here = synced(a="# A\n\nPerhaps the only copy.\n")
    record(here, updated_at="2020-01-01T00:00:00Z")
    for number in range(51):
        change("a", content=f"{number}")
    status, lines = run("pull", here)
    assert (status, lines[0].partition(", as if")[0]) == (2, "conflict a.md: its post went back to an earlier version")
    assert "Perhaps" in texts(here)


def test_a_file_that_changes_while_images_are_fetched_is_not_replaced(run, synced, change, blog, monkeypatch):
    _, _, image = blog.request("POST", "/v1/images", png(), Content_Type="image/png")
    here = synced(a="# A\n")
    change("a", content=f"# A\n\n![x]({image['url']})\n")
    blog.request("PUT", "/v1/posts/by-slug/new", {"title": "New", "content": f"![x]({image['url']})\n"})
    fetch = Remote.image

    def meanwhile(remote: Remote, path: str) -> bytes | None:
        (here / "a.md").write_text("# A, mine\n")
        (here / "new.md").write_text("# New, mine\n")
        return fetch(remote, path)

    monkeypatch.setattr(Remote, "image", meanwhile)
    status, lines = run("pull", here, "--images")
    assert status == 2
    assert [line for line in lines if "it is changing right now" in line]
    left = {name: data for name, data in contents(here).items() if name.endswith(".md")}
    assert left == {"a.md": b"# A, mine\n", "new.md": b"# New, mine\n"}


@pytest.mark.parametrize("command", ["push", "pull"])
def test_anything_that_comes_back_at_the_last_moment_is_not_deleted(
    run, synced, there, blog, monkeypatch, command, tmp_path
):
    here = synced(a="# A\n", b="# B\n", c="# C\n")
    if command == "push":
        (here / "a.md").rename(tmp_path / "away.md")
    else:
        blog.request("DELETE", "/v1/posts/by-slug/a")
    looked = Remote.__dict__["scope"].func

    def meanwhile(remote: Remote) -> str:
        (here / "a.md").write_text("# A\n" if command == "push" else "# A, mine\n")
        return looked(remote)

    monkeypatch.setattr(Remote, "scope", property(meanwhile))
    run(command, here, "--delete")
    assert (here / "a.md").exists()
    assert ("a" in there()) is (command == "push")


def test_a_version_that_ended_when_the_recorded_one_was_seen_proves_nothing(run, synced, there, change):
    here = synced(a="One.\n")
    begun = there()["a"]["updated_at"]
    next_second()
    now = change("a", content="Two.\n")["updated_at"]
    record(here, updated_at=now, seen=begun)  # It was not current then.
    assert run("pull", here)[1][0].startswith("conflict a.md: its post went back to an earlier version, ")
    record(here, updated_at=now, seen=now)
    assert run("pull", here)[1][0] == "updated a.md"


def test_the_history_is_asked_only_about_posts_whose_change_nothing_else_proves(run, synced, change, blog):

    def asked_so_far():
        last = f"/healthz?{time.time()}"
        blog.request("GET", last)
        eventually(lambda: last in blog.log)  # The log is written after the response.
        return blog.log.count("/revisions")

    for name in ("old", "new"):
        here = synced(**{name: "One.\n"})
        next_second()
    # The second pull sees both at once: as long as the version of `new` is current, it proves that of `old`.
    for names, asked in (((), 0), ((), 0), (("old",), 0), (("old", "new"), 2)):
        for name in names:
            change(name, excerpt=str(time.time()))
        before = asked_so_far()
        run("pull", here)
        assert asked_so_far() - before == asked, names
        next_second()
