"""Proposals: changes to posts that wait until somebody applies or refuses them."""

import json

from tests.api.fixtures import LATER, answers, with_key
from tests.conftest import message
from tests.proposals.conftest import POST, apply, propose, titles


def test_a_proposal_changes_nothing_until_it_is_applied(client, agent, post):
    post(title="A Post", status="published", excerpt="Short", tags=["a"], params={"a": 1, "b": 2})
    before = client.get(POST)
    changes = {"excerpt": None, "params": {"a": None}, "content": "New.", "title": "A Post"}
    answer = agent.post(f"{POST}/proposals", json=changes)
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{POST}/proposals/{answer.json['id']}"
    assert {**answer.json, "id": "1"} == {
        "id": "1",
        "post_id": "1",
        "by": "drafts-only",
        "created_at": "2026-11-20T12:00:00Z",
        "base": before.headers["ETag"].strip('"'),
        "changes": {"content": "New.", "excerpt": "", "params": {"b": 2}},
    }
    assert client.get(answer.headers["Location"]).json == answer.json
    assert client.get(POST).data == before.data
    assert client.get(f"{POST}/proposals").json == client.get("/v1/proposals").json == [answer.json]

    applied = apply(client, answer.json)
    assert (applied.status_code, applied.headers["ETag"]) == (200, client.get(POST).headers["ETag"])
    changed = client.get(POST).json
    assert applied.json == changed
    assert (changed["content"], changed["params"], "excerpt" in changed) == ("New.", {"b": 2}, False)
    (revision,) = client.get(f"{POST}/revisions").json
    assert (revision["by"], revision["post"]["excerpt"]) == ("tests", "Short")
    assert client.get("/v1/proposals").json == []
    assert apply(client, answer.json).status_code == client.get(answer.headers["Location"]).status_code == 404


def test_each_field_can_be_cleared(client, agent, post):
    post(excerpt="x", cover_image="https://example.org/a.jpg", tags=["a"], params={"a": 1}, former_slugs=["old"])
    cleared = {"excerpt": "", "tags": [], "cover_image": "", "params": {}, "former_slugs": []}
    proposal = propose(agent, excerpt="", cover_image=None, tags=None, params=None, former_slugs=[])
    assert proposal["changes"] == cleared
    assert apply(client, proposal).json.keys() & cleared.keys() == {"tags"}


def test_only_fields_that_others_changed_to_something_else_are_conflicts(client, agent, post):
    post(excerpt="Old", params={"a": 1})
    proposal = propose(agent, title="New", excerpt="New", params={"a": 2})
    client.patch(POST, json={"content": "Other", "title": "New"})
    client.patch(POST, json={"excerpt": "Mine", "params": {"b": 1}})
    before = client.get(POST).json
    refused = apply(client, proposal)
    assert message(refused, 412) == "excerpt, params: changed in the meantime; force=true applies the proposal anyway"
    assert client.get(POST).json == before
    assert apply(client, proposal, "?force=yes").status_code == 400
    assert apply(client, proposal, "?force=false").status_code == 412
    changed = {"title": "New", "excerpt": "New", "params": {"a": 2}, "updated_at": before["updated_at"]}
    assert apply(client, proposal, "?force=true").json == before | changed


def test_if_match_holds_at_a_proposal_and_when_it_is_applied(client, agent, post):
    post()
    etag = client.get(POST).headers["ETag"]
    assert agent.post(f"{POST}/proposals", json={"title": "B"}, headers={"If-Match": '"x"'}).status_code == 412
    proposal = agent.post(f"{POST}/proposals", json={"title": "B"}, headers={"If-Match": etag}).json
    client.patch(POST, json={"excerpt": "x"})
    answer = apply(client, proposal, headers={"If-Match": etag})
    assert message(answer, 412).endswith("; the ETag must be the post's, not the proposal's")
    assert apply(client, proposal, headers={"If-Match": client.get(POST).headers["ETag"]}).status_code == 200


def test_repeating_a_change_with_the_same_key_returns_the_same_proposal(client, agent, post, clock):
    post()
    first = propose(agent, title="B")
    clock.now += 1
    again = agent.post(f"{POST}/proposals", json={"title": " B "})
    assert (again.status_code, again.json) == (200, first)
    other = propose(client, title="B")
    assert other["id"] != first["id"]
    client.patch(POST, json={"title": "C"})
    assert apply(client, first).status_code == 412
    based = agent.post(f"{POST}/proposals", json={"title": "B"})
    assert (based.status_code, based.json) == (200, first | {"base": client.get(POST).headers["ETag"].strip('"')})
    assert apply(client, first).json["title"] == "B"


def test_a_site_wide_tag_change_is_made_in_the_proposals(client, agent, post):
    post(tags=["Bread", "Rye", "Old"])
    proposal = propose(agent, tags=["Bread", "Old", "New"], content='"tags":["Rye"]')
    client.patch("/v1/tags/bread", json={"name": "Baking"})
    client.delete("/v1/tags/old")
    client.patch("/v1/tags/rye", json={"name": "New"})
    assert client.get(POST).json["tags"] == ["Baking", "New"]
    changes = {"content": '"tags":["Rye"]', "tags": ["Baking", "New"]}
    assert client.get("/v1/proposals").json == [proposal | {"changes": changes}]
    assert apply(client, proposal).json["tags"] == ["Baking", "New"]


def test_a_renamed_tag_makes_two_proposals_alike_but_not_one(client, agent, post):
    post(tags=["Bread"])
    first, second = propose(agent, tags=["Rye"]), propose(agent, tags=["Wheat"])
    post(tags=["Rye"])
    client.patch("/v1/tags/rye", json={"name": "Wheat"})
    both = client.get("/v1/proposals").json
    assert both == [second, first | {"changes": {"tags": ["Wheat"]}}]
    again = agent.post(f"{POST}/proposals", json={"tags": ["Wheat"]})
    assert (again.status_code, again.json["id"]) == (200, first["id"])
    assert propose(agent, tags=["Rye"])["id"] not in (first["id"], second["id"])


def test_a_tag_that_no_proposal_has_is_renamed_without_reading_one(client, agent, post, statements):
    post(tags=["Bread", "Rye"])
    post(tags=["Spelt"])
    propose(agent, tags=["Rye"], content="B")
    propose(agent, content="Spelt")
    read = {}
    for tag in ("spelt", "bread", "rye"):
        with statements() as ran:
            client.patch(f"/v1/tags/{tag}", json={"name": f"{tag} bread"})
        read[tag] = sum('"document" FROM "proposal"' in statement for statement in ran)
    assert read == {"spelt": 0, "bread": 1, "rye": 1}


def test_the_id_of_a_proposal_is_never_used_again(client, agent, post):
    post()
    ids = []
    for title in ("B", "B", "C"):
        proposal = propose(agent, title=title)
        ids.append(int(proposal["id"]))
        agent.delete(f"{POST}/proposals/{proposal['id']}")
    assert ids == sorted({*ids})


def test_a_proposal_has_an_entity_tag_that_changes_with_it(client, agent, post):
    post()
    created = agent.post(f"{POST}/proposals", json={"title": "B"})
    path, tag = created.headers["Location"], created.headers["ETag"]
    assert client.get(path).headers["ETag"] == tag
    again = client.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.data) == (304, b"")
    client.patch(POST, json={"title": "C"})
    assert client.get(path).headers["ETag"] == tag
    renewed = agent.post(f"{POST}/proposals", json={"title": "B"})
    assert (renewed.status_code, renewed.headers["ETag"]) == (200, client.get(path).headers["ETag"])
    assert renewed.headers["ETag"] != tag


def test_a_proposal_obeys_the_rules_of_a_change(client, post):
    post(title="One", status="published")
    post(title="Two")
    nothing = "body: must have a field that differs from the post"
    cases = [
        ({}, nothing),
        ({"title": "One", "tags": []}, nothing),
        ({"title": ""}, "title: must have 1 to 255 characters"),
        ({"slug": "two"}, "slug: already taken by another post"),
        ({"former_slugs": ["two"]}, "former_slugs: two is already taken by another post"),
        ({"status": "scheduled"}, "published_at: "),
        ({"published_at": LATER}, "published_at: "),
        ({"name": 1}, '"name": unknown field'),
    ]
    for body, expected in cases:
        answer = client.post(f"{POST}/proposals", json=body)
        assert (answer.status_code, message(answer)[: len(expected)]) == (400, expected), body
    assert client.post("/v1/posts/9/proposals", json={}).status_code == 404
    assert client.get("/v1/proposals").json == []


def test_a_slug_that_was_free_when_proposed_can_be_taken_when_applied(client, agent, post):
    post()
    proposal = propose(agent, slug="three", title="B")
    post(title="Three")
    assert apply(client, proposal).status_code == 400
    assert client.get(POST).json["title"] == "A title"
    assert client.get("/v1/proposals").json == [proposal]


def test_each_scope_has_its_own_permissions(app, client, agent, post):
    post(status="published")
    mine, others = propose(agent, title="B"), propose(client, title="C")
    path = f"{POST}/proposals"
    for scope, statuses in {
        "read-only": (200, 200, 200, 403, 403, 403),
        "published-only": (404, 404, 404, 403, 403, 403),
        "drafts-only": (200, 200, 200, 201, 403, 403),
    }.items():
        key = agent if scope == "drafts-only" else with_key(app, scope)
        found = (
            key.get("/v1/proposals"),
            key.get(path),
            key.get(f"{path}/{mine['id']}"),
            key.post(path, json={"title": "D"}),
            apply(key, mine),
            key.delete(f"{path}/{others['id']}"),
        )
        assert tuple(answer.status_code for answer in found) == statuses, scope
    stale = agent.delete(f"{path}/{mine['id']}", headers={"If-Match": '"x"'})
    assert message(stale, 412) == "If-Match: the proposal has changed since; get it again"
    tag = agent.get(f"{path}/{mine['id']}").headers["ETag"]
    assert agent.delete(f"{path}/{mine['id']}", headers={"If-Match": tag}).status_code == 204
    assert client.delete(f"{path}/{others['id']}").status_code == 204
    assert agent.delete(f"{path}/{mine['id']}").status_code == 404
    assert titles(client) == ["D"]


def test_they_are_found_by_slug_and_only_at_their_post(client, agent, post):
    post(title="One", status="published")
    post(title="Two")
    proposal = propose(agent, "/v1/posts/by-slug/one", title="B")
    client.patch(POST, json={"slug": "uno"})
    for slug in ("one", "uno"):
        assert client.get(f"/v1/posts/by-slug/{slug}/proposals").json == [proposal]
        assert client.get(f"/v1/posts/by-slug/{slug}/proposals/{proposal['id']}").json == proposal
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/apply")):
        assert client.open(f"/v1/posts/2/proposals/{proposal['id']}{path}", method=method).status_code == 404
    assert client.post(f"/v1/posts/by-slug/one/proposals/{proposal['id']}/apply").status_code == 200


def test_pages_visit_each_proposal_once(client, agent, post, clock):
    for number in (1, 2):
        post()
        for title in "abcde":
            propose(agent, f"/v1/posts/{number}", title=title)
            clock.now += title in "bd"
    for path in (f"{POST}/proposals", "/v1/proposals"):
        whole = client.get(path).json
        for limit in (1, 2, 3):
            pages = [answer.json for answer in answers(client, f"{path}?limit={limit}")]
            assert [each for page in pages for each in page] == whole
            assert {len(page) for page in pages[:-1]} == {limit}
    assert [each["changes"]["title"] for each in whole] == [*"edcbaedcba"]
    assert agent.post(f"{POST}/proposals", json={"title": "b"}).status_code == 200
    client.patch(POST, json={"content": "x"})
    assert agent.post(f"{POST}/proposals", json={"title": "b"}).status_code == 200
    assert [each["id"] for each in client.get("/v1/proposals").json] == [each["id"] for each in whole]
    assert client.get("/v1/proposals?before=7").status_code == 400


def test_a_post_in_the_trash_hides_its_proposals(client, agent, post):
    post()
    proposal = propose(agent, title="B")
    client.delete(POST)
    assert (client.get("/v1/proposals").json, apply(client, proposal).status_code) == ([], 404)
    assert agent.post(f"{POST}/proposals", json={"title": "C"}).status_code == 404
    client.post("/v1/trash/1/restore")
    assert client.get("/v1/proposals").json == [proposal]
    assert apply(client, proposal).json["title"] == "B"


def test_their_number_and_size_are_bounded(client, agent, post):
    for number in range(2):
        post(title=str(number))
    for number in range(20):
        propose(agent, title=f"N{number}")
    full = agent.post(f"{POST}/proposals", json={"title": "one more"})
    assert message(full, 400) == "proposals: this post already has 20; apply or delete one first"
    assert agent.post(f"{POST}/proposals", json={"title": "N3"}).status_code == 200
    wide = "\N{GRINNING FACE}" * 999_999
    for number in range(3):
        propose(agent, "/v1/posts/2", content=f"{number}{wide}")
    body = json.dumps({"content": f"3{wide}"}, ensure_ascii=False).encode()
    large = agent.post("/v1/posts/2/proposals", data=body, content_type="application/json")
    assert message(large, 400).startswith("proposals: must not exceed 16,000,000 bytes in total, ")
    assert sum(len(answer.json) for answer in answers(client, "/v1/proposals")) == 23


def test_a_new_proposal_is_announced_to_webhooks_that_name_the_event(client, agent, post, subscribe, recorded):
    post(title="A", status="published")
    subscribe()
    subscribe(events=["post.proposed", "post.updated"], after_seconds=60)
    client.patch(POST, json={"excerpt": "x"})
    proposal = propose(agent, title="B", tags=["a"])
    agent.post(f"{POST}/proposals", json={"title": "B", "tags": ["a"]})
    client.patch(POST, json={"excerpt": "y"})
    found = [[each["event"] for each in client.get(f"/v1/webhooks/{n}/deliveries").json] for n in (1, 2)]
    assert found == [["post.updated"] * 2, ["post.updated", "post.proposed"]]
    (payload,) = [payload for name, payload in recorded() if name == "post.proposed"]
    assert payload["data"]["post"]["title"] == "A"
    assert "content" not in payload["data"]["post"]
    announced = {name: value for name, value in proposal.items() if name != "changes"} | {"fields": ["title", "tags"]}
    assert payload["data"]["proposal"] == announced
