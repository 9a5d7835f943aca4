"""What a push and a pull decide, even if files, posts or a whole database seem to be gone."""

import pytest

from blogapi.wings.sync.compare import LOST
from tests.sync.conftest import CHANGED_THERE, GONE_THERE, contents, counts, read_state, record, write_state


@pytest.mark.parametrize("command", ["push", "pull"])
def test_another_address_or_another_database_is_refused(run, synced, command, blog):
    here = synced(a="# A\n")
    address, other = f"http://127.0.0.1:{blog.port}", f"http://localhost:{blog.port}"
    refused = f"{here} belongs to {address}: --move-to {other} connects it to that URL"
    assert run(command, here, to=other) == (1, [refused])
    assert run(command, here, "--move-to", other) == (0, [counts(unchanged=1)])
    state = (here / ".blogapi.json").read_text().replace('"created_at": "20', '"created_at": "19')
    (here / ".blogapi.json").write_text(state)
    refused = f"{other} has none of the recorded posts: --move-to {other} compares all files with it"
    assert run(command, here, to=other) == (1, [refused])
    assert run(command, here, "--move-to", other) == (0, [counts(unchanged=1)])


def test_connecting_another_address_overwrites_and_creates_nothing(run, synced, change, there, blog):
    here = synced(a="# A\n", b="# B\n", c="# C\n")
    change("a", content="Theirs.")
    blog.request("DELETE", "/v1/posts/by-slug/b")
    other = f"http://localhost:{blog.port}"
    assert run("pull", here, "--move-to", other)[1][:2] == ["updated a.md", GONE_THERE.format("b.md")]
    assert run("push", here, to=other)[1][0] == GONE_THERE.format("b.md")
    assert there().keys() == {"a", "c"}


def test_pull_removes_no_file_because_a_database_was_replaced(run, synced, blog):
    here = synced(a="# A\n", b="# B\n", c="# C\n")
    head, entries = read_state(here)
    entries["c.md"]["id"] = "999999"  # as if the post had been created after the backup that was restored
    entries["b.md"]["created_at"] = "2020-01-01T00:00:00Z"  # as if another post had got its id after the restore
    write_state(here, head, entries)
    conflicts = [line for line in run("pull", here, "--delete")[1] if "conflict" in line and ":" in line]
    assert conflicts == [f"conflict {name}.md: {LOST}" for name in "bc"]
    for entry in entries.values():
        entry["id"] += "000000"
    write_state(here, head, entries)
    assert run("pull", here, "--delete")[1][0].endswith(" compares all files with it")
    assert contents(here).keys() >= {"a.md", "b.md", "c.md"}


@pytest.mark.parametrize(("gone", "total"), [(6, 8), (1, 1)])
@pytest.mark.parametrize(("command", "side"), [("push", "files"), ("pull", "posts")])
def test_most_files_or_posts_are_deleted_only_with_delete_all(run, synced, blog, there, command, side, gone, total):
    here = synced(**{f"p{number}": f"# {number}\n" for number in range(total)})
    for number in range(gone):
        if side == "files":
            (here / f"p{number}.md").unlink()
        else:
            blog.request("DELETE", f"/v1/posts/by-slug/p{number}")
    refused = f"{gone} of {total} {side} are gone: if that is right, use --delete-all"
    assert run(command, here, "--delete") == (1, [refused])
    assert run(command, here, "--delete-all")[1][-1] == counts(unchanged=total - gone, deleted=gone)


def test_a_slug_or_date_given_on_the_service_is_added_to_a_file_without_it(run, synced, change):
    here = synced(a="# A\n")
    change("a", slug="b", status="published", published_at="2020-01-01T00:00:00Z")
    # A push trusts the time of a post, even if it has changed again within the same second.
    record(here, updated_at="2020-01-01T00:00:00Z")
    assert run("push", here)[1] == [CHANGED_THERE.format("a.md"), counts(changed_there=1)]
    run("pull", here)
    added = "---\nstatus: published\nslug: b\npublished_at: 2020-01-01T00:00:00Z\n---\n\n"
    assert contents(here) == {"a.md": added.encode() + b"# A\n"}


def test_force_names_the_options_that_replaced_it(run, folder):
    for command in ("push", "pull"):
        status, lines = run(command, folder(a="# A\n"), "--force")
        assert (status, "push --overwrite" in lines[-1], "pull --theirs" in lines[-1]) == (2, True, True)
