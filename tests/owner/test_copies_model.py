"""Random tabs in which somebody writes a post, over a network that loses, doubles, delays and reorders requests.

However the tabs interact, each word is still in an unsent form, in a copy, in the post, or in its history. Unless a tab
has dropped a word, or chosen another text, the post's form leads to it.
"""

import json
import random
from contextlib import suppress
from functools import partial
from itertools import count

import pytest
from werkzeug.exceptions import PreconditionFailed

from blogapi.documents import etag_of
from blogapi.posts import storage as posts
from blogapi.storage.engine import Compiled, Placeholder
from blogapi.storage.errors import Rejected
from blogapi.storage.models import Author, DraftCopy, Revision
from blogapi.text import SHORT_PASSAGE
from blogapi.wings.owner import copies
from blogapi.wings.owner.copies import CONFLICT, DISCARDED, OPEN, SAVED, UNTOUCHED, WITH_TEXT, Copy, Sent
from blogapi.wings.owner.posts import check_etag

AUTHOR = Author("settings")
STEPS = 120
WORDS = "content"
COPIES = Compiled(DraftCopy.select(*(getattr(DraftCopy, name) for name in Copy._fields), DraftCopy.fields))
VERSIONS = Compiled(Revision.select(Revision.document).where(Revision.post_id == Placeholder("id")))


def words_in(document):
    return set(json.loads(document)["content"].split()) if document else set()


class Tab:
    """A tab with a form, which behaves as its script would."""

    def __init__(self, blog):
        self.blog, self.draft = blog, blog.draft
        self.load()

    def load(self):
        """Load the page, which is a new form each time."""
        self.replaces = False
        self.id, self.previous, self.document = f"form-{next(self.blog.numbers)}", "", self.blog.document()
        self.words = words_in(self.document)
        copy = copies.current(self.blog.database, self.draft)
        if copy and copy.state != DISCARDED:
            self.previous, self.draft = copy.text_id, copy.draft
        if copy and copy.state == OPEN:
            self.words = self.blog.words_of(copy)
        self.number = self.had = 0

    def sent(self, **fields):
        state = SAVED if self.words == words_in(self.blog.document()) else OPEN
        copy = Copy(self.id, self.number, self.draft, self.blog.post_id, state)
        return Sent(
            copy, {WORDS: " ".join(sorted(self.words)), "base": "", "text": ""} | fields, self.previous, self.replaces
        )

    def type(self):
        self.words, self.number = self.words | {self.blog.new_word()}, self.number + 1
        self.blog.typed |= self.words

    def on_server(self):
        """The words of each text that this form continues."""
        former = {self.id, self.previous.partition(" ")[0]}
        return [words for copy, words in self.blog.copies() if copy.id in former]

    def undo(self):
        """Undo everything typed since the form was loaded or saved."""
        document = words_in(self.document)
        self.blog.typed -= self.words.union(*self.on_server()) - document
        self.words, self.number = document, self.number + 1

    def drop(self):
        """Type over everything. Only texts that the server has stay within reach, except very short ones."""
        self.blog.given_up |= self.words.union(*self.on_server())
        long = [words for words in self.on_server() if len(" ".join(words)) >= SHORT_PASSAGE]
        self.blog.typed -= self.words.union(*self.on_server()).difference(*long)
        self.words, self.number = {self.blog.new_word()}, self.number + 1

    def keep(self):
        """Send what is typed, or ask for news."""
        sent = self.sent()
        if self.number > self.had:
            self.blog.send(lambda: self.blog.write(copies.put, sent), lambda: self.hear(sent))
        else:
            self.hear(sent)

    def hear(self, sent):
        """Handle the response: load the newer text if nothing else was typed here, or else sometimes choose a text."""
        self.had = max(self.had, sent.copy.number)
        rival = copies.newer(self.blog.database, sent)
        if rival == UNTOUCHED and self.number == self.had:
            self.load()
        elif rival and self.blog.random.random() < 0.3:
            now = copies.current(self.blog.database, self.draft)
            self.blog.given_up |= self.blog.words_of(now)
            self.previous, self.replaces, self.number = now.text_id, True, self.number + 1

    def save(self):
        """Save if everything has been sent and no other text is newer. Late requests may still bring newer text."""
        if self.number > self.had or not self.words or copies.newer(self.blog.database, self.sent()):
            return
        content = " ".join(sorted(self.words))
        sent, check = self.sent(text=content), partial(check_etag, etag_of(self.document or b""))

        def arrive():
            post_id = self.blog.post_id
            if post_id is None:
                fields = {"title": "A", "content": content, "status": "draft", "tags": []}
                self.blog.write(copies.create, sent, fields, AUTHOR)
            else:
                self.blog.write(copies.save, post_id, {"content": content}, AUTHOR, check, sent)

        def answer():
            self.document = self.blog.document()

        self.blog.send(arrive, answer)


class Blog:
    """The server with one post, its tabs, and the network between."""

    def __init__(self, database, seed):
        self.database, self.random = database, random.Random(seed)
        self.numbers, self.draft = count(), f"draft-{seed:06}"
        self.typed, self.given_up, self.late, self.known_id = set(), set(), [], None
        database.write(lambda tx: tx.execute(DraftCopy.delete()))
        self.tabs = [Tab(self), Tab(self)]

    def new_word(self):
        return (f"{next(self.numbers)}:" * 60)[:60]

    def write(self, operation, *arguments):
        with suppress(PreconditionFailed, Rejected):  # The form shows both texts, and nothing is saved.
            self.database.write(operation, *arguments)

    @property
    def post_id(self):
        """The id of the post, which never changes once it is created."""
        self.known_id = self.known_id or copies.post_of(self.database, self.draft)
        return self.known_id

    def document(self):
        return posts.get(self.database, self.post_id) if self.post_id else None

    def words_of(self, copy):
        return set(copies.text_of(self.database, copy.id)[WORDS].split())

    def send(self, arrive, answer):
        """Send a request, which arrives now, later, twice or never. If it arrives now, its response may be lost."""
        fate = self.random.random()
        if fate < 0.6:
            arrive()
            if self.random.random() < 0.8:
                answer()
        if fate > 0.4:
            self.late.append(arrive)

    def step(self):
        tab = self.random.choice(self.tabs)
        often, seldom = [tab.type, tab.type, *[tab.keep] * 3], [tab.undo, tab.drop, tab.save, self.deliver, self.other]
        self.random.choice(often + seldom)()

    def deliver(self):
        if self.late:
            self.late.pop(self.random.randrange(len(self.late)))()

    def other(self):
        """Discard or use a copy, open another tab, or close one that has sent everything."""
        known = [copy for copy, _ in self.copies() if copy.state in WITH_TEXT]
        chance, (copy, other) = self.random.random(), self.random.choices(known or [None], k=2)
        if copy and chance < 0.2:
            self.given_up |= self.words_of(copy)
            self.write(copies.discard, copy.id)
        elif copy and chance < 0.4:
            self.given_up |= self.words_of(other)
            self.write(copies.use, copy.id, other.text_id)
        elif chance < 0.7:
            self.tabs.append(Tab(self))
        if len(self.tabs) > 3:
            done = [tab for tab in self.tabs if tab.number == tab.had]
            self.tabs.remove(done[0]) if done else None

    def copies(self):
        """The copies, each with its words."""
        for *row, fields in self.database.rows(COPIES):
            yield Copy._make(row), set(json.loads(fields).get(WORDS, "").split())

    def reachable(self, *states):
        found = words_in(self.document()).union(*(tab.words for tab in self.tabs if tab.number > tab.had))
        found.update(*(words for copy, words in self.copies() if copy.state in states))
        versions = self.database.rows(VERSIONS, id=self.post_id or 0)
        return found.union(*(words_in(document) for (document,) in versions))


@pytest.mark.both_engines
def test_no_typed_word_is_ever_out_of_reach(database, scale):
    for seed in range(60 if scale == 1 else 2000):
        blog = Blog(database, seed)
        for step in range(STEPS):
            blog.step()
            if step % 6:
                continue
            assert blog.typed <= blog.reachable(*WITH_TEXT), (seed, step)
            assert blog.typed - blog.given_up <= blog.reachable(OPEN, CONFLICT), (seed, step)
            current = [copy.draft for copy, _ in blog.copies() if copy.state in (OPEN, SAVED)]
            assert len(current) == len({*current}), (seed, step)
