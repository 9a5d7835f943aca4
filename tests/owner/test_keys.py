"""Keys and webhooks on the owner's page."""

import pytest

from blogapi.storage import keys
from blogapi.storage.models import ApiKey, Webhook
from blogapi.webhooks import storage as webhooks
from tests.cases import cases
from tests.owner.pages import follow, pages, send, view
from tests.service import add_key

SENT_BEFORE = "This form was sent before, and what it created is gone. Press the button again to create another."


def status(client, key, method="GET"):
    return client.open("/v1/posts", method=method, headers={"Authorization": f"Bearer {key}"}).status_code


def test_a_key_is_created_shown_once_and_works(owner, stranger):
    page = view(owner, "/settings/keys").press("Create key", name=" laptop ")
    key, line = page.all(".new code")
    assert line == f"curl 'http://127.0.0.1:8000/v1/posts?limit=1' -H 'Authorization: Bearer {key}'"
    assert status(stranger, key) == 200
    page = view(owner, "/settings/keys")
    assert (key in page.text, f"…{key[-4:]}" in page.text) == (False, True)
    assert page.all("dd") == ["2026-11-20 12:00 UTC", "2026-11-20", "1 of 1,000,000 requests"]


def test_a_key_can_be_restricted_to_a_known_scope(owner, stranger, database):
    for scope in ("", "all"):
        page = view(owner, "/settings/keys").press("Create key", name="site", scope=scope)
        reason = "Must be one of full, read-only, published-only, drafts-only."
        assert (page.status, page.all(".wrong"), keys.listing(database)) == (400, [reason], [])
    page = view(owner, "/settings/keys").press("Create key", name="site", scope="published-only")
    key = page.all(".new code")[0]
    assert (status(stranger, key), status(stranger, key, "POST")) == (200, 403)
    assert "Read published posts and their tags" in page.said


@pytest.mark.both_engines
def test_a_key_that_exists_is_regenerated_and_revoked(owner, stranger, database):
    old = add_key(database, "a <b>")
    for label in ("Yes, regenerate", "Yes, revoke"):
        page = view(owner, "/settings/keys").press(label, name="x<y")
        assert (page.status, "x<y" in page.said[0]) == (400, True)
    page = view(owner, "/settings/keys").press("Yes, regenerate")
    new = page.all(".new code")[0]
    assert (status(stranger, old), status(stranger, new)) == (401, 200)
    page = view(owner, "/settings/keys").press("Yes, revoke")
    assert page.said[0] == "“a <b>” was revoked."
    assert status(stranger, new) == 401


def test_a_taken_or_empty_name_is_refused_next_to_its_field_and_the_form_is_kept(owner, database):
    add_key(database, "laptop")
    page = view(owner, "/settings/keys").press("Create key", name="laptop", scope="read-only")
    assert (page.status, len(page.all(".wrong"))) == (400, 1)
    assert page.soup.select_one("#name")["aria-describedby"].split() == [page.soup.select_one(".wrong")["id"]]
    fields = page.form("Create key")[1]
    assert (fields["name"], fields["scope"]) == ("laptop", "read-only")
    assert len(view(owner, "/settings/keys").press("Create key", name=" ").all(".wrong")) == 1
    page = page.press("Create key", name="phone")  # continues from there
    assert page.all(".new h2") == ["Copy the key phone now"]


@pytest.mark.both_engines
def test_many_keys_come_in_pages(owner, database):
    def add(tx):
        for number in range(250):
            keys.add(tx, f"key & {number:03}", f"blog_{number}")

    database.write(add)
    found = [name for page in pages(owner, "/settings/keys", "More keys") for name in page.all(".card bdi")]
    assert found == [f"key & {number:03}" for number in range(250)]


FORMS = {  # the button, the typed fields, and other fields
    "keys": ("Create key", {"name": "laptop"}, {"name": "phone"}),
    "webhooks": ("Add webhook", {"url": "http://8.8.8.8"}, {"url": "http://8.8.4.4"}),
}


@pytest.mark.both_engines
@pytest.mark.parametrize(("path", "model"), [("keys", ApiKey), ("webhooks", Webhook)], ids=FORMS)
def test_a_form_that_is_sent_twice_creates_one_and_shows_it_both_times(owner, count, path, model):
    label, typed, other = FORMS[path]
    action, fields = view(owner, f"/settings/{path}").form(label)
    first, second = (follow(owner, send(owner, action, fields | typed)).all(".new code")[0] for _ in range(2))
    assert (first, count(model)) == (second, 1)
    assert follow(owner, send(owner, action, fields | other)).all(".new code")[0] != first


@pytest.mark.parametrize(
    ("path", "button", "then"),
    [("keys", "Yes, revoke", {}), ("keys", "Yes, regenerate", {"name": "phone"}), ("webhooks", "Yes, delete", {})],
)
def test_sending_a_form_again_never_revives_anything_deleted(owner, stranger, count, path, button, then):
    label, typed, _ = FORMS[path]
    action, fields = view(owner, f"/settings/{path}").form(label)
    secret = follow(owner, send(owner, action, fields | typed)).all(".new code")[0]
    view(owner, f"/settings/{path}").press(button)
    view(owner, f"/settings/{path}")
    page = follow(owner, send(owner, action, fields | typed))
    assert (page.status, page.all(".wrong"), secret in page.text) == (400, [SENT_BEFORE], False)
    assert (status(stranger, secret), count(Webhook)) == (401, 0)
    page = page.press(label, **then)  # with the same name, unless that is taken
    assert (page.status, page.all(".new code")[0] != secret, status(stranger, secret)) == (200, True, 401)


@cases("path", FORMS)
def test_a_form_without_its_nonce_creates_nothing(owner, database, count, path):
    label, typed, _ = FORMS[path]
    action, fields = view(owner, f"/settings/{path}").form(label)
    del fields["nonce"]
    for sent in (fields | typed, {"form_token": fields["form_token"]}):
        assert send(owner, action, sent).status_code == 400
    assert (keys.listing(database), count(Webhook)) == ([], 0)


EVENTS = ["post.created", "post.published"]


@pytest.mark.both_engines
def test_a_webhook_is_added_turned_off_and_on_and_deleted(owner, database, count):
    page = view(owner, "/settings/webhooks")
    names = [each["value"] for each in page.soup.select("[name=events]")]
    assert ("post.created" in names, "ping" in names) == (True, False)  # A ping is always sent.
    page = page.press("Add webhook", url=" http://8.8.8.8/hook ", events=EVENTS, preset="")
    (secret,) = page.all(".new code")
    (webhook,) = webhooks.listing(database)
    assert webhook[:5] == (1, "http://8.8.8.8/hook", EVENTS, True, "2026-11-20T12:00:00Z")
    assert database.row(Webhook.select(Webhook.secret)) == (secret,)
    page = view(owner, "/settings/webhooks").press("Turn off")
    assert (page.said[0], "whsec_" in page.text) == ("The webhook is off.", False)
    assert not webhooks.get(database, 1).active
    assert page.press("Turn on").said[0] == "The webhook is on."
    assert webhooks.get(database, 1).active
    assert view(owner, "/settings/webhooks").press("Yes, delete").said[0] == "The webhook was deleted."
    assert count(Webhook) == 0


def test_a_webhook_is_pinged_and_its_deliveries_are_shown_and_sent_again(owner, webhook, receiver, send, post):
    webhook()
    assert view(owner, "/settings/webhooks").press("Ping").said[0] == "A ping is on its way."
    assert "not sent yet" in owner.get("/settings/webhooks").text
    send()
    post()
    receiver.status = 500
    send()
    page = view(owner, "/settings/webhooks")
    rows = page.all(".rows li")
    assert [row.split()[:2] for row in rows] == [["pending", "post.created:"], ["delivered", "ping"]]
    assert "2026-11-20 12:00 UTC · 500 · next attempt 2026-11-20 12:00 UTC" in rows[0]
    assert "2026-11-20 12:00 UTC · 204" in rows[1]
    receiver.status = 204
    button = page.soup.select(".rows button")[1]
    action = button.find_parent("form")["action"]
    assert action == f"/settings/webhooks/1/{receiver.messages[0].id}/resend"
    fields = {each["name"]: each["value"] for each in button.find_parent("form").select("input")}
    assert owner.post(action, data=fields, content_type="multipart/form-data").status_code == 303
    assert view(owner, "/settings/webhooks").said[0] == "The message is on its way again."
    send()
    assert receiver.types == ["ping", "post.created", "ping"]
    assert "204 after 2 attempts" in view(owner, "/settings/webhooks").all(".rows li")[1]


@cases(
    ("typed", "message"),
    ({"url": "example.org"}, "Must be an address that begins with https:// or http://, without spaces."),
    ({"url": ""}, "Must have 1 to 2,048"),
    ({"url": "http://127.0.0.1/"}, "127.0.0.1 is"),
    ({"events": []}, "Must have 1 to"),
    ({"events": "post.x"}, "Event 1: must be one of"),
    ({"headers": "Authorization"}, "Must be lines such as"),
    ({"headers": "A: b\nA: c"}, "Must be lines such as"),
    ({"headers": "Host: b"}, "Host: must be a header name"),
    ({"after_seconds": "601"}, "Must be from 0 to 600."),
    ({"after_seconds": "x"}, "Must be a whole number."),
    ({"body": "x"}, "Must be one of"),
)
def test_webhooks_that_the_api_would_refuse_are_neither_added_nor_changed(owner, database, typed, message):
    database.write(webhooks.add, "http://8.8.8.8/", ["ping"])
    before = webhooks.listing(database)
    typed = {"url": "http://8.8.4.4/", "events": ["ping"], "preset": ""} | typed
    for path, label in (("/settings/webhooks", "Add webhook"), ("/settings/webhooks/1/edit", "Save")):
        page = view(owner, path).press(label, **typed)
        assert (page.status, page.all(".wrong")[0].startswith(message)) == (400, True), page.all(".wrong")
        assert page.form(label)[1]["url"] == typed["url"]
    assert webhooks.listing(database) == before


def test_a_long_url_leaves_room_for_the_secret_in_the_cookie(owner):
    action, fields = view(owner, "/settings/webhooks").form("Add webhook")
    send(owner, action, fields | {"url": "http://8.8.8.8/" + "🧁" * 2000})
    assert len(owner.get_cookie("blogapi-notice", path="/settings").value) < 4000  # Browsers drop longer ones.
    assert view(owner, "/settings/webhooks").all(".new code")[0].startswith("whsec_")


@cases(("label", "count"), [("When a post", 1), ("Whenever readers", 1), ("Whenever a", 6), ("On these", 2)])
def test_presets_choose_the_events_of_a_webhook(owner, database, label, count):
    page = view(owner, "/settings/webhooks")
    (preset,) = [each.input["value"] for each in page.soup.select("label") if each.text.strip().startswith(label)]
    page.press("Add webhook", url="http://8.8.8.8/", events=EVENTS, preset=preset)
    webhook = webhooks.listing(database)[-1]
    assert (len(webhook.events), "ping" in webhook.events) == (count, False)


def test_an_edited_webhook_keeps_events_that_few_webhooks_name(owner, database):
    events = ["post.proposed", "ping", "site.changed"]
    database.write(webhooks.add, "http://8.8.8.8/", events)
    view(owner, "/settings/webhooks/1/edit").press("Save", after_seconds="5")
    assert sorted(webhooks.get(database, 1).events) == sorted(events)


@pytest.mark.both_engines
def test_a_webhook_is_edited_and_its_password_and_the_values_of_its_headers_are_never_shown(owner, database):
    url, masked = "http://me:secret@8.8.8.8/?a=b@c", "http://…@8.8.8.8/?a=b@c"
    typed = {"url": url, "after_seconds": "60", "headers": "Authorization: Bearer a\nX-A: b:c"}
    page = view(owner, "/settings/webhooks").press("Add webhook", **typed, body="dispatch")
    assert page.all(".new bdi") == page.all(".card h2 bdi") == [masked]
    assert "me:secret" not in page.text + view(owner, "/settings/webhooks").text
    facts = "site.changed · after 60 s · as dispatch · with Authorization, X-A"
    assert facts in page.all("main p")
    page = view(owner, "/settings/webhooks/1/edit")
    assert {"Bearer a", "secret"} & {*page.text.split(">")} == set()
    assert page.form("Save")[1].items() >= {"url": masked, "headers": "", "body": "dispatch"}.items()
    assert page.press("Save", after_seconds="5", events=["ping"]).said[0] == f"“{masked}” was saved."
    webhook = webhooks.get(database, 1)
    assert (webhook.url, webhook.header_names) == (url, ["Authorization", "X-A"])
    assert (webhook.events, webhook.after_seconds, webhook.body) == (["ping"], 5, "dispatch")
    view(owner, "/settings/webhooks/1/edit").press("Save", headers="X-B: c", url="http://8.8.4.4/")
    assert webhooks.get(database, 1).header_names == ["X-B"]
    view(owner, "/settings/webhooks/1/edit").press("Save", remove_headers="on")
    assert (webhooks.get(database, 1).header_names, webhooks.get(database, 1).url) == ([], "http://8.8.4.4/")


def link_for(owner, host):
    """The link that fills in the form of a webhook for a host."""
    (link,) = [each["href"] for each in view(owner, "/settings/webhooks").soup.select(".hint a") if each.text == host]
    return link


@cases("host", ["Netlify", "Vercel", "Cloudflare Pages", "GitHub workflow"])
def test_the_form_of_a_webhook_is_filled_in_for_a_host(owner, host):
    fields = view(owner, link_for(owner, host)).form("Add webhook")[1]
    assert fields.items() >= {"preset": "site.changed", "after_seconds": "60"}.items()
    assert fields["url"].startswith("https://api.")
    expected = ("dispatch", "Authorization: Bearer TOKEN") if host == "GitHub workflow" else ("event", "")
    assert (fields["body"], fields["headers"]) == expected


def test_deliveries_name_their_post_or_tag(owner, database, client):
    database.write(webhooks.add, "http://8.8.8.8/", ["post.created", "tag.deleted", "ping"])
    client.post("/v1/posts", json={"title": "<b>Loaf", "content": "A", "tags": ["rye"]})
    client.delete("/v1/tags/rye")
    client.post("/v1/webhooks/1/ping")
    rows = view(owner, "/settings/webhooks").all(".rows li > span:nth-of-type(2)")
    assert rows == ["ping", "tag.deleted: “rye”", "post.created: “<b>Loaf”"]


def test_a_hosts_placeholder_is_refused(owner, database):
    page = view(owner, link_for(owner, "GitHub workflow")).press("Add webhook")
    assert (page.status, page.all(".wrong")) == (400, ["Still has “OWNER”: put your own in its place."])
    page = page.press("Add webhook", url="https://api.github.com/repos/me/blog/dispatches")
    assert page.all(".wrong") == ["Still has “TOKEN”: put your own in its place."]
    page = view(owner, link_for(owner, "Netlify")).press("Add webhook")
    assert page.all(".wrong") == ["Still has “…”: put your own in its place."]
    assert webhooks.listing(database) == []
    page = page.press("Add webhook", url="https://api.netlify.com/build_hooks/1")
    assert page.said[0].endswith("It will not be shown again. This host does not check it, so you can ignore it.")
