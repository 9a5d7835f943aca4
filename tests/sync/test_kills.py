"""Push and pull lose and duplicate nothing, even if they and the service are killed at any moment."""

import random
import re
import subprocess
import time
from collections import Counter

import pytest
from PIL import Image

from tests.blogs import write_files
from tests.images.pictures import png
from tests.service import BIN, eventually, unmeasured
from tests.sync.conftest import command_runner, counts

pytestmark = pytest.mark.slow


class Commands:
    """Runs commands against a service, some in this process, and collects what they print."""

    def __init__(self, service, folder, monkeypatch):
        self.runner = command_runner(service, monkeypatch)
        self.service = service
        self.folder = folder
        self.output = ""
        self.random = random.Random(60)

    def start(self, *arguments):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.Popen([BIN / "blogapi", *arguments, self.folder], env=unmeasured(), **pipes)

    def run(self, *arguments):
        status, lines = self.runner(*arguments, self.folder)
        self.output += "\n".join([*lines, ""])
        return status, lines

    def kill(self, *arguments, kills):
        """Kill a command after a while, or the service, for which the command then waits."""
        for number in range(kills):
            process = self.start(*arguments)
            time.sleep(self.random.uniform(0.5, 2.5))
            if number % 3 == 2:
                self.service.kill()
                self.service.start()
                time.sleep(self.random.uniform(0, 1))
            process.kill()
            self.output += process.communicate(timeout=60)[0]


def every(service, path="/v1/posts?limit=1000"):
    return {post["slug"]: post for post in service.request("GET", path)[2]}


@pytest.mark.sqlite
def test_a_folder_and_a_blog_that_both_change_become_the_same_despite_kills(service, scale, tmp_path, monkeypatch):
    commands = Commands(service, tmp_path / "folder", monkeypatch)
    posts, images = (500, 100) if scale > 1 else (60, 12)
    folder = write_files(
        tmp_path / "folder", {f"post-{number}.md": f"# Post {number}\n\nWords {number}.\n" for number in range(posts)}
    )
    for number in range(images):
        (folder / f"image-{number}.png").write_bytes(png(Image.new("RGB", (number + 1, 1))))
        edit(folder / f"post-{number}.md", lambda text, n=number: text + f"\n![{n}](image-{n}.png)\n")
    commands.kill("push", kills=3 if scale == 1 else 8)
    assert commands.run("push")[0] == 0
    there = every(service)
    assert there.keys() == {f"post-{number}" for number in range(posts)}
    assert len(service.request("GET", "/v1/images?limit=1000")[2]) == images
    for slug, post in there.items():
        assert post["content"].startswith(f"# {post['title']}\n\nWords {slug.removeprefix('post-')}.\n")
    assert not revisions(service, there)

    expected = {}
    for number, (slug, post) in enumerate(sorted(there.items())):
        file = folder / f"{slug}.md"
        if number % 5 == 0:
            edit(file, lambda text: text.replace("Words", "Here:"))
            expected[slug] = post["content"].replace("Words", "Here:")
        elif number % 5 == 1:
            expected[slug] = post["content"].replace("Words", "There:")
            assert service.request("PATCH", f"/v1/posts/{post['id']}", {"content": expected[slug]})[0] == 200
        elif number % 15 == 2:
            file.unlink()
        elif number % 15 == 3:
            assert service.request("DELETE", f"/v1/posts/{post['id']}")[0] == 204
        else:
            expected[slug] = post["content"]
    commands.kill("pull", "--delete", kills=3 if scale == 1 else 6)
    commands.kill("push", "--delete", kills=3 if scale == 1 else 6)
    assert (commands.run("pull", "--delete")[0], commands.run("push", "--delete")[0]) == (0, 0)
    after = every(service)
    assert {slug: post["content"] for slug, post in after.items()} == expected
    assert {path.stem for path in folder.glob("*.md")} == expected.keys()
    for command in ("push", "pull"):
        status, lines = commands.run(command)  # A killed command can leave images, which are named.
        assert (status, lines[-1]) == (0, counts(unchanged=len(expected)))
    assert {slug for slug in expected if "Here:" in (folder / f"{slug}.md").read_text()} == {
        slug for slug, content in expected.items() if "Here:" in content
    }
    assert revisions(service, after) == {1: sum("ere:" in content for content in expected.values())}
    assert len(service.request("GET", "/v1/trash?limit=1000")[2]) == posts - len(expected)
    assert "conflict " not in commands.output.replace("conflict 0", "")
    assert not [path.name for path in folder.iterdir() if path.name.endswith((".part", ".mine.md"))]


def edit(file, change):
    file.write_text(change(file.read_text()))


def revisions(service, posts):
    """The number of posts for each number of revisions, except posts without revisions."""
    numbers = (len(service.request("GET", f"/v1/posts/{post['id']}/revisions")[2]) for post in posts.values())
    return Counter(filter(None, numbers))


@pytest.mark.sqlite
def test_many_unchanged_posts_take_three_requests(service, scale, tmp_path, monkeypatch):
    commands, posts = Commands(service, tmp_path / "folder", monkeypatch), 1000 if scale > 1 else 100
    files = {f"{number}.md": f"Words {number}." * 100 for number in range(posts)}
    write_files(tmp_path / "folder", files | {"0.md": "![x](x.png)", "x.png": png()})
    assert service.blogapi("import", str(tmp_path / "folder"), timeout=120).returncode == 0

    def requests(number):
        """The requests up to one that only this test sends, in their order."""
        service.request("GET", f"/healthz?{number}")
        eventually(lambda: f"/healthz?{number}" in service.log)
        return re.findall('"([A-Z]+ /v1/[^ "?]*)', service.log)

    state, written, until = tmp_path / "folder/.blogapi.json", [], time.time() + 1
    eventually(lambda: time.time() > until)  # A post could still change in the second of its last change.
    for number, command in enumerate(("push", "push", "pull", "pull", "push")):
        before = len(requests(f"{number}-before"))
        assert commands.run(command)[1][-1].startswith(f"created 0, updated 0, unchanged {posts},")
        sent = requests(f"{number}-after")[before:]
        assert number == 0 or 1 <= len(sent) <= 3, sent  # The first also uploads the image.
        written.append((state.read_bytes(), state.stat().st_ctime_ns))
    assert written[2] == written[3] == written[4]
