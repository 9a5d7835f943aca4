"""Two folders, a script and a restored backup play against each other: no text is ever lost, and no post made twice."""

import json
import random
import re
import shutil
from collections import Counter
from contextlib import suppress

import pytest

from tests.service import Server
from tests.sync.conftest import command_runner, restore_backup, take_backup

WORD = re.compile(r"\b[bt][0-9]+z\b")  # b…: which file or post it is; t…: a text that somebody wrote


class Model:
    """A service, two folders whose names are `a` and `b`, and a number for each text that was written."""

    def __init__(self, service, run, top, rand):
        self.service, self.run, self.rand = service, run, rand
        self.folders = [top / "a", top / "b"]
        self.backup, self.count = None, 0
        for folder in self.folders:
            folder.mkdir(parents=True)

    def word(self, kind):
        self.count += 1
        return f"{kind}{self.count}z"

    def posts(self):
        return self.service.request("GET", "/v1/posts?limit=1000")[2]

    def everywhere(self):
        """Return all words in files, posts, revisions and the trash."""
        found = [path.read_text() for folder in self.folders for path in folder.rglob("*.md")]
        posts = self.posts()
        found += map(json.dumps, posts)
        for post in posts:
            for revision in self.service.request("GET", f"/v1/posts/{post['id']}/revisions?limit=100")[2]:
                path = f"/v1/posts/{post['id']}/revisions/{revision['revision']}"
                found.append(json.dumps(self.service.request("GET", path)[2]))
        for entry in self.service.request("GET", "/v1/trash?limit=1000")[2]:
            found.append(json.dumps(self.service.request("GET", f"/v1/trash/{entry['post']['id']}")[2]))
        return set(WORD.findall("\n".join(found)))

    # What people do

    def file(self, folder):
        files = sorted(path for path in folder.rglob("*.md") if not path.name.endswith(".mine.md"))
        return self.rand.choice(files) if files else None

    def create_file(self, folder):
        head = self.rand.choice(["", "---\nstatus: published\n---\n", "---\nauthor: Ann # ours\n---\n"])
        path = folder / self.rand.choice(["", "sub/"]) / f"f{self.count}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{head}{self.word('b')}\n\n{self.word('t')}\n")

    def edit_file(self, folder):
        if file := self.file(folder):
            file.write_text(f"{file.read_text().rstrip()} {self.word('t')}\n")

    def rename_file(self, folder):
        if file := self.file(folder):
            file.rename(folder / f"r{self.count}-{file.name}")

    def remove_file(self, folder):
        if (file := self.file(folder)) and self.rand.random() < 0.5:
            file.unlink()

    def lose_state(self, folder):
        (folder / ".blogapi.json").unlink(missing_ok=True)

    def copy_state(self, folder):
        other = self.folders[self.folders[0] == folder]
        if (other / ".blogapi.json").exists():
            shutil.copy(other / ".blogapi.json", folder)

    def create_post(self, _):
        self.service.request("POST", "/v1/posts", {"title": self.word("b"), "content": self.word("t")})

    def change_post(self, _):
        if posts := self.posts():
            post = self.rand.choice(posts)
            change = self.rand.choice(
                [
                    {"content": f"{post['content'].rstrip()} {self.word('t')}\n"},
                    {"slug": f"s{self.count}"},
                    {"status": self.rand.choice(["draft", "published"])},
                    {"params": {"author": self.word("t")}},
                ]
            )
            self.service.request("PATCH", f"/v1/posts/{post['id']}", change)

    def delete_post(self, _):
        if (posts := self.posts()) and self.rand.random() < 0.5:
            self.service.request("DELETE", f"/v1/posts/{self.rand.choice(posts)['id']}")

    def take_backup(self, _):
        self.backup = self.service.database.with_name(f"backup{self.count}")
        self.count += 1
        take_backup(self.service, self.backup)

    def restore_backup(self, _):
        if self.backup:
            restore_backup(self.service, self.backup)

    # What the commands do

    def sync(self, folder):
        flags = {
            "push": ["--delete", "--overwrite", "--recreate", "--dry-run"],
            "pull": ["--delete", "--theirs", "--published", "--dry-run"],
            "status": [],
        }
        command = self.rand.choice(["push", "push", "pull", "pull", "status"])
        chosen = [flag for flag in flags[command] if self.rand.random() < 0.25]
        before, births = self.everywhere(), self.births()
        status, lines = self.run(command, folder, *chosen)
        said = command, folder.name, chosen, status, lines
        assert status in (0, 1, 2), said
        assert before <= self.everywhere(), (before - self.everywhere(), said)
        twice = {word for word, count in self.births().items() if count > max(1, births[word])}
        # A file is created again if it has neither its old name nor a state that knows it.
        assert not twice or any(line.startswith("created") for line in lines[:-1]), (twice, said)

    def births(self):
        return Counter(word for post in self.posts() for word in {*re.findall(r"\bb[0-9]+z\b", json.dumps(post))})

    def play(self, steps):
        acts = [self.create_file, self.edit_file, self.edit_file, self.rename_file, self.remove_file, self.create_post]
        acts += [self.change_post, self.change_post, self.delete_post, *([self.sync] * 8)]
        rare = [self.take_backup, self.restore_backup, self.lose_state, self.copy_state]
        for _ in range(steps):
            self.rand.choice(rare if self.rand.random() < 0.07 else acts)(self.rand.choice(self.folders))

    def settle(self):
        """Resolve all conflicts; both folders are then what the blog is."""
        for folder in (*self.folders, *self.folders, *self.folders):
            self.run("pull", folder, "--theirs")
            with suppress(FileNotFoundError):
                for kept in folder.rglob("*.mine.md"):
                    kept.unlink()
            self.run("push", folder, "--recreate")
        for folder in self.folders:
            for command in ("push", "pull"):
                _, lines = self.run(command, folder)
                assert not any(line.startswith(("updated", "created")) for line in lines[:-1]), (folder.name, lines)


@pytest.mark.slow
def test_no_text_is_lost_whatever_happens_on_either_side(tmp_path, scale, monkeypatch):
    for seed in range(2 * scale):
        top = tmp_path / str(seed)
        top.mkdir()
        with Server(top / "blog.db") as service:
            model = Model(service, command_runner(service, monkeypatch), top, random.Random(seed))
            try:
                model.play(60)
                model.settle()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
        shutil.rmtree(top)
