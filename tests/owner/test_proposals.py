"""Proposals on the owner's page: applied, edited and refused."""

import pytest

from blogapi.wings.owner.posts import PROPOSALS_PER_PAGE
from blogapi.wings.proposals import storage as proposals
from tests.api.fixtures import with_key
from tests.owner.pages import pages, view

POST = "/settings/posts/1"


@pytest.fixture
def proposed(app, post):
    """A proposal for a published post."""
    post(title="Bread", content="Flour.\n\nSalt.", status="published", excerpt="Old")
    fields = {"title": "Rye bread", "content": "Flour.\n\nSea salt.", "excerpt": "", "former_slugs": ["loaf"]}
    return with_key(app, "drafts-only").post("/v1/posts/1/proposals", json=fields).json


def test_a_post_shows_what_a_proposal_would_change_until_it_is_refused(owner, client, proposed):
    assert view(owner, "/settings/posts").all(".posts .state") == ["proposal", "published"]
    page = view(owner, POST)
    assert page.all("section h2") == ["Proposed by drafts-only 2026-11-20 12:00 UTC"]
    assert page.all("section h3") == ["Title", "Content", "Excerpt"]
    assert page.all("section .removed") == ["Bread", "Salt.", "Old"]
    assert page.all("section .added") == ["Rye bread", "Sea salt.", ""]
    assert page.all("section > p") == ["Former slugs: loaf"]
    assert page.press("Yes, refuse").said[0] == "The proposal was refused."
    assert (client.get("/v1/proposals").json, client.get("/v1/posts/1").json["title"]) == ([], "Bread")


@pytest.mark.both_engines
def test_the_last_refusal_can_be_undone_for_an_hour(owner, client, proposed, database, clock):
    client.post("/v1/posts/1/proposals", json={"title": "Loaf"})
    waiting = client.get("/v1/proposals").json
    refused = view(owner, POST).press("Yes, refuse")
    assert (len(client.get("/v1/proposals").json), refused.all("section h3")) == (1, ["Title", "Content", "Excerpt"])
    assert refused.press("Undo").said[0] == "The proposal is waiting again."
    assert client.get("/v1/proposals").json == waiting
    first = view(owner, POST).press("Yes, refuse")
    second = first.press("Yes, refuse")
    assert first.press("Undo").status == 404
    clock.now += 3599
    assert (database.write(proposals.prune, 30), view(owner, "/settings/posts").all(".state")) == (0, ["published"])
    clock.now += 1
    assert (database.write(proposals.prune, 30), second.press("Undo").status) == (1, 404)


def test_a_refused_proposal_takes_no_place_until_its_undo_needs_one(owner, client, proposed):
    page = view(owner, POST).press("Yes, refuse")
    for number in range(proposals.MAX_OF_POST):
        assert client.post("/v1/posts/1/proposals", json={"title": f"{number}"}).status_code == 201
    page = page.press("Undo")
    assert (page.status, "This post already has 20" in page.all(".problem")[0]) == (400, True)
    assert client.get(f"/v1/posts/1/proposals/{proposed['id']}").status_code == 404


def test_it_is_applied_as_shown(owner, client, proposed, caplog):
    caplog.set_level("INFO")
    done = view(owner, POST).press("Apply")
    assert f"proposal {proposed['id']} by drafts-only was applied to post 1" in caplog.messages
    assert "“Rye bread” was changed as proposed." in done.said[0]
    assert done.all("section h2") == []
    post = client.get("/v1/posts/1").json
    assert (post["title"], post["content"], "excerpt" in post) == ("Rye bread", "Flour.\n\nSea salt.", False)
    assert client.get("/v1/posts/1/revisions").json[0]["by"] == "settings"
    done.press("Undo")
    assert client.get("/v1/posts/1").json["title"] == "Bread"


def test_what_changed_since_is_named_and_an_older_page_applies_nothing(owner, client, proposed):
    page = view(owner, POST)
    client.patch("/v1/posts/1", json={"title": "Loaf"})
    again = page.press("Apply")
    assert again.all("section h2")[0] == "Nothing was done: the post has changed since"
    assert client.get("/v1/posts/1").json["title"] == "Loaf"
    assert "Changed since then: Title. Apply overwrites these changes." in again.all("section > p")
    again.press("Apply")
    assert client.get("/v1/posts/1").json["title"] == "Rye bread"


def test_a_proposal_that_has_changed_since_it_was_shown_is_shown_again(app, owner, client, post, caplog):
    post(title="Bread", content=".", status="published", tags=["Rye"])
    agent = with_key(app, "drafts-only")
    agent.post("/v1/posts/1/proposals", json={"tags": ["Baking"]})
    caplog.set_level("INFO")
    page = view(owner, POST)
    post(tags=["Baking"])
    client.patch("/v1/tags/baking", json={"name": "Cakes"})
    again = page.press("Apply")
    assert (again.status, again.all("section h2")[0]) == (412, "Nothing was done: the proposal has changed since")
    assert client.get("/v1/posts/1").json["tags"] == ["Rye"]
    assert "applied" not in caplog.text
    assert again.all("section .added") == ["Cakes"]
    again.press("Apply")
    assert client.get("/v1/posts/1").json["tags"] == ["Cakes"]


def test_editing_it_opens_the_form_with_it_as_unsaved_text(owner, client, proposed):
    assert "Edit" not in view(owner, POST).all(".actions button")  # The form has no former slugs.
    client.delete(f"/v1/posts/1/proposals/{proposed['id']}")
    fields = {"title": "Rye bread", "content": "Flour.\n\nSea salt."}
    client.post("/v1/posts/1/proposals", json=fields)
    form = view(owner, POST).press("Edit")
    (title,), (content,) = form.soup.select("#title"), form.soup.select("#content")
    assert (title.text.strip(), content.text.strip()) == ("Rye bread", "Flour.\n\nSea salt.")
    assert form.all(".notice p")[0].startswith("Unsaved changes from 2026-11-20 12:00 UTC (a proposal by tests)")
    assert client.get("/v1/proposals").json == []
    assert client.get("/v1/posts/1").json["title"] == "Bread"


def test_only_the_newest_are_compared_and_a_link_leads_to_the_others(owner, post, client):
    post(content="Flour.")
    for number in range(PROPOSALS_PER_PAGE + 1):
        client.post("/v1/posts/1/proposals", json={"content": f"{number}"})
    first, second = pages(owner, POST, "Older proposals")
    assert [len(page.all("section .added")) for page in (first, second)] == [PROPOSALS_PER_PAGE, 1]
