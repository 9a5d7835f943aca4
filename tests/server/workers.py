"""Workers that use a service until it is killed, and record everything that it acknowledged."""

import http.client
import random
import subprocess
import threading
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle

from blogapi.clock import rfc3339
from tests.service import add_key

LOST = (OSError, http.client.HTTPException, ValueError)  # The answer did not arrive, or only half of it.
MOST_POSTS = 30  # per editor
FAR = 3600  # seconds; not reached while the test runs
EVENTS = ["post.created", "post.published", "post.deleted"]  # The other events are not checked.


@contextmanager
def all_at_work(workers, services):
    """Let all workers run concurrently, alternating between the services, until the block ends."""
    stopped = threading.Event()
    with ThreadPoolExecutor(len(workers)) as pool:
        pairs = zip(workers, cycle(services), strict=False)
        ended = [pool.submit(worker.work, service, stopped) for worker, service in pairs]
        try:
            yield
        finally:
            stopped.set()
    for future in ended:
        future.result()  # raises the worker's exception


def check(workers, stored):
    """Compare the stored posts with what was acknowledged to the workers; return them."""
    for worker in workers:
        worker.check(stored)
    return stored


def settle(workers, service):
    """Let the workers resolve requests that got no response."""
    ended = threading.Event()
    ended.set()
    for worker in workers:
        worker.work(service, ended)


def told(receiver):
    """The ids of messages by type and post; a message may arrive twice with the same id."""
    told = defaultdict(set)
    for message in receiver.messages:
        told[message.type, message.payload["data"]["post"]["id"]].add(message.id)
    return told


def shown(post):
    """The part of a post that must be the same whenever it is read."""
    due = post["status"] == "scheduled" and post["published_at"] <= rfc3339(time.time())
    return post["title"], post["content"], post["slug"], post["tags"], "published" if due else post["status"]


class Editor:
    """Creates, changes, schedules, deletes and restores its own posts, one request after another."""

    def __init__(self, number):
        self.name = f"editor {number}"
        self.created = 0  # number of creations started
        self.posts = {}  # as last acknowledged
        self.scheduled = {}  # those waiting for their time, which are left alone
        self.deleted = {}  # posts in the trash, as they were
        self.deletions, self.restored, self.restored_published = Counter(), Counter(), Counter()
        self.born_published = set()
        self.doubt = None  # what the unanswered request was meant to do

    def work(self, service, stopped):
        """Continue after the last server died, until this one does."""
        with suppress(*LOST):
            if self.doubt:
                attempt, *arguments = self.doubt
                attempt(service, *arguments)
            while not stopped.is_set():
                random.choice(self.possible)(service)

    @property
    def possible(self):
        """The operations possible on the current posts."""
        creation = [self.create, self.create] if len(self.posts) <= MOST_POSTS else []
        changes = [self.change, self.schedule, self.delete, self.restore_revision] if self.posts else []
        return creation + changes + ([self.restore] if self.deleted else [])

    def create(self, service):
        self.created += 1
        tags = random.sample(["shared", "Shared Too", self.name], random.randrange(4))
        status = random.choice(["draft", "published"])
        body = {"title": f"{self.name}: {self.created}", "content": "word " * 200, "tags": tags, "status": status}
        self.send_creation(service, body)
        if self.created % 5 == 0:
            self.send_creation(service, body)

    def send_creation(self, service, body):
        self.doubt = self.send_creation, body
        key = f"{self.name}:{self.created}".replace(" ", "-")
        status, _, post = service.request("POST", "/v1/posts", body, Idempotency_Key=key)
        assert status == 201, post
        assert post.items() >= body.items()
        self.posts[post["id"]] = post
        if post["status"] == "published":
            self.born_published.add(post["id"])
        self.doubt = None

    def change(self, service):
        tags = random.choice([["SHARED"], []])
        self.send_change(service, {"title": f"{self.name}: {self.created} changed", "tags": tags})

    def schedule(self, service):
        moment = rfc3339(time.time() + random.choice([2, 3, FAR]))
        self.send_change(service, {"status": "scheduled", "published_at": moment})

    def send_change(self, service, changes):
        number = random.choice([*self.posts])
        self.doubt = self.look_at, number, changes
        status, _, post = service.request("PATCH", f"/v1/posts/{number}", changes)
        if status == 400 and changes.get("published_at", "9") <= rfc3339(time.time()):
            self.doubt = None  # It waited for a new worker until it timed out.
            return
        assert status == 200, post
        self.keep(post, changes)

    def delete(self, service):
        number = random.choice([*self.posts])
        self.doubt = self.look_at, number, None
        assert service.request("DELETE", f"/v1/posts/{number}")[0] == 204
        self.forget(number)

    def restore(self, service):
        number = random.choice([*self.deleted])
        self.doubt = self.look_in_trash, number
        status, _, post = service.request("POST", f"/v1/trash/{number}/restore")
        assert status == 200, post
        self.take_back(post)

    def take_back(self, post):
        before = self.deleted.pop(post["id"])
        assert shown(post) == shown(before)
        self.restored[post["id"]] += 1
        self.restored_published[post["id"]] += post["status"] == "published"
        self.posts[post["id"]] = post
        self.doubt = None

    def look_in_trash(self, service, number):
        """Find out what happened to an unanswered restoration."""
        status, _, post = service.request("GET", f"/v1/posts/{number}")
        if status == 200:
            self.take_back(post)
        else:
            assert service.request("GET", f"/v1/trash/{number}")[0] == 200
            self.doubt = None

    def restore_revision(self, service):
        number = random.choice([*self.posts])
        status, _, revisions = service.request("GET", f"/v1/posts/{number}/revisions")
        assert status == 200, revisions
        if not revisions:
            return
        revision = random.choice(revisions)
        changes = {name: revision["post"][name] for name in ("title", "tags")}
        self.doubt = self.look_at, number, changes
        status, _, post = service.request("POST", f"/v1/posts/{number}/revisions/{revision['revision']}/restore")
        assert status == 200, post
        assert shown(post) == shown(self.posts[number] | changes)
        self.keep(post, changes)

    def keep(self, post, changes):
        """Record a post as it is. If it has the time of a schedule, it is scheduled, or was until that time."""
        del self.posts[post["id"]]
        scheduled = "published_at" in changes and post.get("published_at") == changes["published_at"]
        (self.scheduled if scheduled else self.posts)[post["id"]] = post
        self.doubt = None

    def forget(self, number):
        self.deleted[number] = self.posts.pop(number)
        self.deletions[number] += 1
        self.doubt = None

    def look_at(self, service, number, changes):
        """Find out what happened to an unanswered change or, if `changes` is empty, to a deletion."""
        status, _, post = service.request("GET", f"/v1/posts/{number}")
        if status == 404:
            assert changes is None
            self.forget(number)
        else:
            before = self.posts[number]
            assert shown(post) in [shown(before), shown(before | (changes or {}))]
            self.keep(post, changes or {})

    def check(self, stored):
        """Compare what was acknowledged with the stored posts."""
        doubtful = self.doubt[1] if self.doubt and self.doubt[0] in (self.look_at, self.look_in_trash) else None
        for number, post in (self.posts | self.scheduled).items():
            assert number == doubtful or shown(stored[number]) == shown(post)
        assert (self.deleted.keys() & set(stored)) <= {doubtful}

    def check_messages(self, messages, stored):
        """Find one message for each event."""
        for number in {*self.posts, *self.scheduled, *self.deleted}:
            came_due = number in self.scheduled and stored[number]["status"] == "published"
            publications = (number in self.born_published) + came_due + self.restored_published[number]
            assert len(messages["post.created", number]) == 1 + self.restored[number]
            assert len(messages["post.published", number]) == publications
            assert len(messages["post.deleted", number]) == self.deletions[number]


class Renamer:
    """Renames a tag of its posts again and again."""

    def __init__(self):
        self.posts = set()
        self.number = 0
        self.doubt = False

    def work(self, service, stopped):
        with suppress(*LOST):
            while len(self.posts) < 20:
                number = len(self.posts)
                body = {"title": "Renamed", "content": "x", "slug": f"renamed-{number}", "tags": ["a", "Tag 0"]}
                status, _, post = service.request("POST", "/v1/posts", body, Idempotency_Key=str(number))
                assert status == 201
                self.posts.add(post["id"])
            while not stopped.is_set():
                self.rename(service)

    def rename(self, service):
        doubted, self.doubt = self.doubt, True
        name = {"name": f"Tag {self.number + 1}"}
        status, _, tag = service.request("PATCH", f"/v1/tags/tag%20{self.number}", name)
        assert (status, tag) == (200, name | {"posts": 20}) or (status == 404 and doubted)
        self.number += 1
        self.doubt = False

    def check(self, stored):
        names = {stored[number]["tags"][1] for number in self.posts}
        possible = {f"Tag {self.number}", f"Tag {self.number + self.doubt}"}
        assert len(names) <= 1
        assert names <= possible


class Undoer:
    """Overwrites its own posts with another key, and undoes that with a command, which is killed at first."""

    def __init__(self):
        self.key = ""
        self.posts = {}  # as they should be after an undo
        self.since = None  # when it began to overwrite them, until that is undone

    def work(self, service, stopped):
        with suppress(*LOST):
            self.set_up(service)
            self.undo(service)
            ended = False
            while not ended:
                self.since = rfc3339(time.time())
                self.spoil(service)
                self.undo(service)
                ended = stopped.is_set()

    def set_up(self, service):
        self.key = self.key or service.write(add_key, "script")
        for number in range(len(self.posts), 20):
            body = {"title": "Mine", "content": "word " * 200, "tags": ["mine"], "status": "published"}
            status, _, post = service.request("PUT", f"/v1/posts/by-slug/mine-{number}", body)
            assert status in (200, 201), post
            self.posts[post["id"]] = post

    def spoil(self, service):
        script = {"Authorization": f"Bearer {self.key}"}
        for number, post in self.posts.items():
            body = random.choice([{"slug": f"spoilt-{number}", "tags": []}, None])
            status = service.request("PATCH" if body else "DELETE", f"/v1/posts/{number}", body, **script)[0]
            assert status == (200 if body else 204)
            spam = {"title": "Spam", "content": "x", "slug": post["slug"]}
            # A post that was published keeps its old slug.
            assert service.request("POST", "/v1/posts", spam, **script)[0] == (400 if body else 201)

    def undo(self, service):
        if self.since:
            command = "undo", "--since", self.since, "--key", "script"
            with suppress(subprocess.TimeoutExpired):
                service.blogapi(*command, timeout=random.uniform(0.3, 1))
            done = service.blogapi(*command)
            assert done.returncode == 0, done
            self.since = None

    def check(self, stored):
        for number, post in self.posts.items():
            assert self.since or shown(stored[number]) == shown(post)
