"""Drafts that save themselves on the owner's page."""

import pytest

from blogapi.storage.models import Post
from blogapi.wings.webhooks.models import Event
from tests.owner.pages import send, view

MINUTE = 60


@pytest.fixture
def save(owner):
    """Send the form of a draft as the script does, or as its button; `old` is what it was answered before."""
    form = {}

    def send_form(old=None, by_button=False, **typed):
        if not form:
            form["action"], form["fields"] = view(owner, "/settings/posts/new").form("Create")
        fields = form["fields"] | ({} if by_button else {"autosave": "on"}) | (old or {})
        return send(owner, fields.pop("action", form["action"]), fields | typed)

    return send_form


def versions(client):
    return [each["post"]["title"] for each in client.get("/v1/posts/1/revisions").json]


def test_a_draft_saves_itself_again_and_again_over_its_own_version(save, client):
    first = save(title="Evening", content="One.").json
    second = save(first, title="Evening", content="Two.").json
    assert (first["action"], client.get("/v1/posts/1").json["content"]) == ("/settings/posts/1/edit", "Two.")
    assert second["etag"] == client.get("/v1/posts/1").headers["ETag"].strip('"')
    assert save(first, title="Evening", content="Three.").status_code == 412
    assert client.get("/v1/posts/1").json["content"] == "Two."


@pytest.mark.parametrize(
    ("title", "content", "saved"),
    [
        ("", "## *Bread* of today\n\nText.", ("Bread of today", "## *Bread* of today\n\nText.")),
        ("Bread", "", ("Bread", "Bread")),
        (" ", " ", None),
    ],
)
def test_a_title_or_a_line_is_enough_for_a_draft_to_save_itself(save, client, title, content, saved):
    answer = save(title=title, content=content)
    posts = client.get("/v1/posts").json
    assert [(post["title"], post["content"]) for post in posts] == ([saved] if saved else [])
    assert answer.status_code == (200 if saved else 400)


def test_a_draft_without_content_goes_on_saving_itself(save, client):
    answer = save(title="Br", content="").json
    answer = save(answer, title="Bread", content="").json
    assert client.get("/v1/posts/1").json["content"] == "Bread"
    answer = save(answer, title="Bread", content="Flour.").json
    assert save(answer, title="Rolls", content="").status_code == 400  # A text is not lost for want of another.
    assert client.get("/v1/posts/1").json["content"] == "Flour."


def test_the_first_line_is_the_title_of_a_draft_until_it_has_one(save, client):
    answer = save(content="Br").json
    answer = save(answer, content="Bread").json
    assert (client.get("/v1/posts/1").json["title"], client.get("/v1/posts/1").json["slug"]) == ("Bread", "bread")
    save(answer, title="Rolls", content="Bread")
    assert (client.get("/v1/posts/1").json["title"], client.get("/v1/posts/1").json["slug"]) == ("Rolls", "rolls")


def test_the_slug_of_a_draft_follows_its_title_until_it_is_given_or_published(save, owner, client, post):
    hint = "The post’s name in addresses."
    post(title="Bread")
    answer = save(title="Bread", content="B").json
    answer = save(answer, title="Bread", content="C").json
    assert client.get("/v1/posts/2").json["slug"] == "bread-2"
    answer = save(answer, title="Rolls", content="C", slug="mine").json
    form = view(owner, "/settings/posts/2/edit")
    assert form.all("#slug-hint") == [f"{hint} Leave it empty to create it from the title."]
    form.press("Save", title="Cake")
    assert client.get("/v1/posts/2").json["slug"] == "mine"
    client.patch("/v1/posts/2", json={"status": "published"})
    form = view(owner, "/settings/posts/2/edit")
    assert form.all("#slug-hint") == [f"{hint} Leave it empty to keep it."]
    form.press("Save", title="Tea", slug="")
    assert client.get("/v1/posts/2").json["slug"] == "mine"


def test_a_draft_whose_answer_was_lost_is_not_created_twice_and_what_was_typed_since_is_saved(save, client, count):
    save(title="Ev", content="A", excerpt="C")
    answer = save(title="Evening", content="B").json
    assert count(Post) == 1
    post = client.get("/v1/posts/1")
    assert (post.json["title"], post.json["content"], "excerpt" in post.json) == ("Evening", "B", False)
    assert answer["etag"] == post.headers["ETag"].strip('"')


def test_a_draft_whose_answer_was_lost_does_not_overwrite_a_later_change(save, client, clock):
    save(title="Ev", content="A")
    clock.now += MINUTE
    client.patch("/v1/posts/1", json={"content": "From the phone."})
    assert save(title="Evening", content="B").status_code == 412
    assert client.get("/v1/posts/1").json["content"] == "From the phone."


def test_a_draft_whose_answer_was_lost_is_saved_by_its_button_and_created_once(save, client, count, clock):
    save(title="Ev", content="A")
    clock.now += MINUTE
    answer = save(by_button=True, title="Evening", content="B")
    assert (answer.headers["Location"], count(Post)) == ("/settings/posts/1", 1)
    assert client.get("/v1/posts/1").json["title"] == "Evening"
    assert save(by_button=True, title="Night", content="C").status_code == 412  # The page has not seen that version.
    assert client.get("/v1/posts/1").json["title"] == "Evening"


def test_the_history_gets_one_version_in_ten_minutes(save, client, owner, clock):
    answer = save(title="0", content="A").json
    for minute in range(1, 25):
        clock.now += MINUTE
        answer = save(answer, title=str(minute), content="A").json
    assert versions(client) == ["19", "9"]
    view(owner, "/settings/posts/1/edit").press("Save", title="mine")
    answer |= {"etag": client.get("/v1/posts/1").headers["ETag"].strip('"')}
    save(answer, title="25", content="A")
    assert versions(client) == ["mine", "24", "19", "9"]  # What a person saved is kept.
    assert [each["by"] for each in client.get("/v1/posts/1/revisions").json] == [
        "autosave",
        "settings",
        "autosave",
        "autosave",
    ]


def test_webhooks_hear_nothing_of_a_draft_that_saves_itself(save, client, owner, database, count):
    client.post("/v1/webhooks", json={"url": "https://8.8.8.8/"})
    answer = save(title="A", content="A").json
    save(answer, title="B", content="A")
    assert count(Event) == 0
    view(owner, "/settings/posts/1/edit").press("Save", title="C")
    assert [each for (each,) in database.rows(Event.select(Event.type))] == ["post.updated"]


def test_a_post_is_never_published_without_an_event(save, client, database):
    client.post("/v1/webhooks", json={"url": "https://8.8.8.8/"})
    save(title="A", content="A", status="published")
    assert [each for (each,) in database.rows(Event.select(Event.type))] == ["post.created", "post.published"]
