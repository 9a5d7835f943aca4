"""Push and pull: what a command leaves alone, and how to go on from there."""

from blogapi.wings.sync import state
from tests.blogs import open_sources, write_files
from tests.sync.conftest import contents, counts


def test_a_file_that_was_deleted_by_mistake_can_be_got_back(run, folder):
    here = folder(a="# A\n")
    run("push", here)
    (here / "a.md").unlink()
    assert "pull --theirs writes it again" in run("pull", here)[1][0]
    assert run("pull", here, "--theirs")[1][0] == "created a.md"
    assert run("push", here) == (0, [counts(unchanged=1)])


def test_a_post_that_is_created_again_replaces_no_other_post_with_its_slug(run, folder, blog, there):
    here = folder(a="# A\n", b="# B\n")
    run("push", here)
    blog.request("DELETE", "/v1/posts/by-slug/a?permanent=true")
    blog.request("PUT", "/v1/posts/by-slug/a", {"title": "Stranger", "content": "Stranger"})
    for options in (["--recreate"], ["--recreate", "--overwrite"]):
        status, lines = run("push", here, *options)
        assert (status, lines[0]) == (2, "conflict a.md: its post is gone, and another post has the slug a")
    assert there()["a"]["content"] == "Stranger"


def test_a_post_that_was_only_touched_is_unchanged(run, folder):
    here = folder(a="# A\n")
    run("push", here)
    known = here / ".blogapi.json"
    known.write_text(known.read_text().replace('"updated_at": "20', '"updated_at": "19'))
    assert run("push", here) == (0, [counts(unchanged=1)])


def test_a_state_that_is_too_large_is_refused(run, folder, monkeypatch):
    here = folder(a="# A\n")
    run("push", here)
    monkeypatch.setattr(state, "MAX_STATE_BYTES", 100)
    refused = f"{here}/.blogapi.json is too large: delete it, and all files are compared with the posts"
    assert run("push", here) == (1, [refused])


def test_nothing_changes_if_the_state_cannot_be_written(run, folder, change, there):
    here = folder(a="# A\n", b="# B\n")
    run("push", here)
    folder(a="# A, here\n")
    change("b", content="There.\n")
    (here / "..blogapi.json.part").mkdir()  # in the way
    for command in ("push", "pull"):
        status, lines = run(command, here)
        assert (status, lines[-1].startswith(f"{here}: ")) == (1, True), command
    assert there()["a"]["content"] == "# A\n"
    assert contents(here)["b.md"] == b"# B\n"
    (here / "..blogapi.json.part").rmdir()
    assert [run(command, here)[0] for command in ("push", "pull")] == [0, 0]


def test_force_names_the_options_of_its_command(run, folder):
    for command, option in (("push", "--overwrite"), ("pull", "--theirs")):
        status, lines = run(command, folder(a="# A\n"), "--force")
        found = [each for each in ("--overwrite", "--theirs") if each in lines[-1]]
        assert (status, found) == (2, [option])


def test_an_id_with_a_control_character_is_no_file_name(tmp_path):
    feed = '{"version": "https://jsonfeed.org/version/1.1", "items": [{"title": "a\\u0000b", "content_text": "x"}]}'
    with open_sources(write_files(tmp_path, {"feed.json": feed}) / "feed.json") as sources:
        assert len([*sources]) == 1
