"""Two machines, a script and a restored backup interfere: no text is lost, and no post is created twice."""

import json
import random
import re
import shutil
from collections import Counter
from contextlib import suppress
from itertools import count

import pytest

from tests.service import Server
from tests.sync.conftest import command_runner, restore_backup, take_backup

WORD = re.compile(r"\b[bt][0-9]+z\b")  # b… identifies a file or a post; t… identifies a text


class Model:
    """A service, a folder on each of the machines `a` and `b`, and a number for each text written."""

    def __init__(self, service, monkeypatch, top, rand, create=None):
        self.service, self.monkeypatch, self.top, self.rand, self.create = service, monkeypatch, top, rand, create
        self.runner = command_runner(service, monkeypatch)
        self.folders = [top / "a", top / "b"]
        self.backup, self.count, self.log = None, 0, []
        self.revised = {}  # the revisions of posts, by id: the API does not show those of a post in the trash
        for folder in self.folders:
            folder.mkdir(parents=True)

    def get(self, path):
        return self.service.request("GET", f"/v1/{path}")[2]

    def run(self, command, folder, *options):
        """Run a command on the machine of a folder."""
        self.monkeypatch.setenv("XDG_STATE_HOME", str(self.top / f".own-{folder.name}"))
        self.log.append((command, folder.name, options, *self.runner(command, folder, *options)))
        return self.log[-1][-2:]

    def word(self, kind):
        self.count += 1
        return f"{kind}{self.count}z"

    def posts(self):
        return self.get("posts?limit=1000")

    def everywhere(self):
        """Return all words in files, posts, revisions and the trash."""
        files = [path.read_text() for folder in self.folders for path in folder.rglob("*.md")]
        posts = self.posts()
        for post_id in (post["id"] for post in posts):
            path = f"posts/{post_id}/revisions"
            numbers = (revision["revision"] for revision in self.get(f"{path}?limit=100"))
            self.revised[post_id] = [self.get(f"{path}/{number}") for number in numbers]
        trash = [self.get(f"trash/{entry['post']['id']}") for entry in self.get("trash?limit=1000")]
        revised = [revision for post in (*posts, *trash) for revision in self.revised.get(post["id"], ())]
        posts += trash + revised
        return {*WORD.findall("\n".join([*files, *map(json.dumps, posts)]))}

    # What people do

    def files(self, folder):
        return sorted(path for path in folder.rglob("*.md") if not path.name.endswith(".mine.md"))

    def file(self, folder):
        files = self.files(folder)
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

    def rewrite_file(self, folder):
        if file := self.file(folder):  # This is no change.
            file.write_bytes(file.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))

    def copy_file(self, folder):
        """Copy a file with a new text, as from a template."""
        if file := self.file(folder):
            text = re.sub(r"\b[bt][0-9]+z\b", lambda match: self.word(match[0][0]), file.read_text())
            file.with_name(f"c{self.count}.md").write_text(re.sub("^(slug|id|created_at):.*\n", "", text, flags=re.M))

    def renumber(self, folder):
        """Rename files to each other's names, after a push without conflicts: each stays the file of its post."""
        files = self.files(folder)
        if len(files) < 2 or self.run("push", folder)[0]:
            return
        before, last = self.births_by_id(), folder / f"n{self.count}.md"
        chosen = self.rand.sample(files, self.rand.randint(2, len(files)))
        targets = [*chosen[1:], chosen[0] if self.rand.random() < 0.5 else last]
        for number, file in enumerate(chosen):
            file.rename(folder / f".moving{number}")
        for number, target in enumerate(targets):
            (folder / f".moving{number}").rename(target)
        self.count += 1
        said = self.run("push", folder)
        assert self.births_by_id().items() <= before.items(), said

    def sync_files(self, folder):
        """Copy some files from the other machine, and perhaps the state, like an unfinished sync program."""
        other = self.folders[self.folders[0] == folder]
        for path in sorted(other.rglob("*.md")):
            if self.rand.random() < 0.5:
                target = folder / path.relative_to(other)
                if target.is_dir() or (target.exists() and self.rand.random() < 0.5):
                    continue
                target.parent.mkdir(exist_ok=True)
                shutil.copy(path, target)
        if self.rand.random() < 0.3:
            self.copy_state(folder)

    def restore_files(self, folder):
        """Restore the folder from a copy, perhaps without its state."""
        kept = self.top / f".kept-{folder.name}"
        if kept.exists() and self.rand.random() < 0.5:
            shutil.copytree(kept, folder, dirs_exist_ok=True)
        else:
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(folder, kept)

    def lose_own_states(self, folder):
        shutil.rmtree(self.top / f".own-{folder.name}", ignore_errors=True)

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
            changes = [{"content": f"{post['content'].rstrip()} {self.word('t')}\n"}, {"slug": f"s{self.count}"}]
            changes += [{"status": self.rand.choice(["draft", "published"])}, {"params": {"author": self.word("t")}}]
            self.service.request("PATCH", f"/v1/posts/{post['id']}", self.rand.choice(changes))

    def delete_post(self, _):
        if (posts := self.posts()) and self.rand.random() < 0.5:
            self.service.request("DELETE", f"/v1/posts/{self.rand.choice(posts)['id']}")

    def take_backup(self, _):
        self.backup = self.top / f"backup{self.count}.db"
        self.count += 1
        take_backup(self.service, self.backup)

    def restore_database(self, _):
        if self.backup:
            self.revised.clear()
            restore_backup(self.service, self.backup, self.create)

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
        # A file is created again if it has neither its old name nor a state that knows it; and without a state, a file
        # that took the name of another conflicts with the post of that, which --overwrite then replaces.
        may_be = "--overwrite" in chosen or any(line.startswith("created") for line in lines[:-1])
        assert not twice or may_be, (twice, said)

    def births(self):
        return Counter(word for words in self.births_by_id().values() for word in words)

    def births_by_id(self):
        return {post["id"]: {*re.findall(r"\bb[0-9]+z\b", json.dumps(post))} for post in self.posts()}

    def play(self, steps):
        acts = [self.create_file, self.edit_file, self.edit_file, self.rename_file, self.remove_file, self.create_post]
        acts += [self.change_post, self.change_post, self.delete_post, self.rewrite_file, self.copy_file]
        acts += [self.renumber, *([self.sync] * 8)]
        rare = [self.take_backup, self.restore_database, self.lose_state, self.copy_state, self.sync_files]
        rare += [self.restore_files, self.lose_own_states, self.take_backup, self.restore_database]
        for _ in range(steps):
            act, folder = self.rand.choice(rare if self.rand.random() < 0.1 else acts), self.rand.choice(self.folders)
            self.log.append((act.__name__, folder.name))
            act(folder)

    def settle(self):
        """Resolve all conflicts; both folders then match the blog."""
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
@pytest.mark.both_engines
def test_no_text_is_lost_whatever_happens_on_either_side(tmp_path, scale, monkeypatch, backend, request):
    numbers = count()

    def create():
        server, name = request.getfixturevalue("postgresql_server"), f"model{next(numbers)}"
        server.execute(f'CREATE DATABASE "{name}"')
        return server.url(name)

    on_postgresql = backend == "postgresql"
    for seed in range(scale if on_postgresql else 2 * scale):
        top = tmp_path / str(seed)
        top.mkdir()
        database = create() if on_postgresql else top / "blog.db"
        with Server(database, log_file=top / "log") as service:
            model = Model(service, monkeypatch, top, random.Random(seed), create if on_postgresql else None)
            try:
                model.play(60)
                model.settle()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
        shutil.rmtree(top)
