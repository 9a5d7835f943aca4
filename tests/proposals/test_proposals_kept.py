"""How long proposals are kept, and what undo does with them."""

import json

import pytest

from blogapi.storage.models import AppliedProposal, Proposal
from blogapi.wings.history import undo
from blogapi.wings.proposals import storage as proposals
from tests.api.fixtures import with_key
from tests.conftest import message
from tests.proposals.conftest import POST, apply, propose, titles

BEFORE = "2026-11-20T12:00:01Z"
CHANGED_BACK, WITHDRAWN = ("changed back", "A", ""), ("withdrawn", "A", "a proposal by drafts-only")


def undone(database, key, dry_run=False):
    return [(each.action, each.title, each.reason) for each in undo.undo(database, BEFORE, key, dry_run)]


@pytest.fixture
def proposed(client, agent, post, clock):
    """An applied and a pending proposal by the agent, for a post that is older than both."""
    post(title="A")
    clock.now += 1
    apply(client, propose(agent, title="B"))
    propose(agent, title="C")


def test_undo_reverts_proposals_made_or_applied_with_a_key_or_with_any_key(client, database, proposed):
    assert undone(database, "tests", True) == [CHANGED_BACK]
    assert undone(database, None, True) == [CHANGED_BACK, WITHDRAWN]
    for dry_run in (True, False):
        assert undone(database, "drafts-only", dry_run) == [CHANGED_BACK, WITHDRAWN]
    assert client.get(POST).json["title"] == "A"
    assert titles(client) == []
    assert undone(database, "drafts-only") == []


def test_undo_leaves_a_post_that_another_key_changed_since(client, database, proposed):
    client.patch(POST, json={"excerpt": "x"})
    assert undone(database, "drafts-only") == [("left alone", "A", "tests has changed it since"), WITHDRAWN]


@pytest.mark.usefixtures("proposed")
def test_the_same_proposal_can_be_applied_again_after_undo_which_skips_refused_ones(client, agent, database, clock):
    undone(database, "drafts-only")
    clock.now += 1
    apply(client, propose(agent, title="B"))
    assert client.get(POST).json["title"] == "B"
    database.write(proposals.refuse, 1, int(propose(agent, title="D")["id"]))
    assert undone(database, "drafts-only") == [CHANGED_BACK]  # A refused proposal does not wait.


def test_proposals_are_deleted_after_90_days_and_with_a_purged_post(client, agent, post, database, clock, count):
    for _ in range(4):
        post()
    for number in (1, 2, 3, 4):
        propose(agent, f"/v1/posts/{number}", title="B")
    apply(client, propose(agent, title="C"))
    client.delete("/v1/posts/2?permanent=true")
    client.delete("/v1/posts/3")
    client.delete("/v1/posts/4")
    client.delete("/v1/trash/4")
    tables, write = (AppliedProposal, Proposal), database.write
    assert [*map(count, tables), write(proposals.prune_purged), write(proposals.prune, 30)] == [1, 2, 0, 0]
    clock.now += 31 * 86_400
    assert [write(proposals.prune_purged), write(proposals.prune, 30), *map(count, tables)] == [0, 1, 0, 2]
    clock.now += 59 * 86_400
    assert [write(proposals.prune, 30), titles(client)] == [2, []]


def test_without_a_history_the_proposals_go_with_the_post(own_app, count):
    client = with_key(own_app(keep_days=0))
    client.post("/v1/posts", json={"title": "A", "content": "."})
    propose(client, title="B")
    assert (client.delete(POST).status_code, count(Proposal)) == (204, 0)


def test_proposals_in_the_trash_count_for_every_bound(client, agent, post, database):
    for _ in range(2):
        post()
    for number in range(4):
        propose(agent, "/v1/posts/2", content=f"{number}" + "\N{GRINNING FACE}" * 990_000)
    client.delete("/v1/posts/2")
    in_trash = ", including those for posts in the trash; apply or delete one first"
    body = json.dumps({"content": "\N{GRINNING FACE}" * 990_000}, ensure_ascii=False).encode()
    refused = agent.post(f"{POST}/proposals", data=body, content_type="application/json")
    assert message(refused) == f"proposals: must not exceed 16,000,000 bytes in total{in_trash}"
    row = {"post_id": 2, "author": "agent", "created_at": database.now, "bytes": 1, "base": "", "document": ""}
    for _ in range(996):
        database.write(lambda tx: tx.insert(Proposal.insert(row)))
    refused = agent.post(f"{POST}/proposals", json={"title": "B"})
    assert message(refused) == f"proposals: there are already 1,000{in_trash}"
    client.delete("/v1/trash/2")
    propose(agent, title="B")


def test_a_damaged_proposal_is_a_503_and_can_be_deleted(client, agent, post, database):
    post()
    proposal = propose(agent, title="B")
    database.write(lambda tx: tx.execute(Proposal.update(document="{broken")))
    assert apply(client, proposal).status_code == 503
    assert client.delete(f"{POST}/proposals/{proposal['id']}").status_code == 204


def test_a_proposal_that_changes_nothing_any_more_leaves_no_trace_for_undo(client, agent, post, database, clock):
    post(title="A")
    clock.now += 1
    proposal = propose(agent, title="B")
    client.patch(POST, json={"title": "B"})
    assert apply(client, proposal).status_code == 200
    client.patch(POST, json={"title": "C"})
    assert undone(database, "drafts-only") == []
    assert (client.get(POST).json["title"], titles(client)) == ("C", [])
