"""The owner's page, as it is without a browser: sessions, forms, and what it shows and changes."""

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from html import unescape

import pytest

from blogapi import create_app
from blogapi.storage import keys, pages, webhooks
from blogapi.storage.models import Session, Webhook
from tests.service import Server, add_key

NO_SESSION = "There is no session. On the server, “blogapi settings” prints a link that opens one."
NO_LINK = "no such link: it works once, for ten minutes; “blogapi settings” prints another"
PAGES = ("/settings", "/settings/keys", "/settings/webhooks", "/settings/posts")
FORM = re.compile(r'<form method="post" action="([^"]+)".*?name="form_token" value="([^"]+)"', re.DOTALL)


def enter(app, database):
    """A client with a session."""
    client = app.test_client()
    answer = client.post("/settings/open", data={"link": database.write(keys.add_link)})
    assert (answer.status_code, answer.headers["Location"]) == (303, "/settings")
    return client


@pytest.fixture
def owner(app, database):
    return enter(app, database)


def said(answer):
    """The paragraphs of a page."""
    return [unescape(text) for text in re.findall("<p(?: [^>]*)?>(.*?)</p>", answer.text)]


def form_token(owner, action):
    """The token of a form of the page."""
    forms = {}
    for page in (*PAGES, "/settings/posts?status=draft", "/settings/posts?q=kase"):
        forms |= {unescape(each): token for each, token in FORM.findall(owner.get(page).text)}
    return forms[action]


def send(owner, action, **fields):
    """Send a form of the page."""
    return owner.post(action, data={"form_token": form_token(owner, action)} | fields)


def done(owner, action, notice, **fields):
    """Send a form of the page, and see that the page then says what is done."""
    answer = send(owner, action, **fields)
    page = owner.get(answer.headers["Location"])
    assert (answer.status_code, page.status_code, said(page)[0]) == (303, 200, notice)
    return page


# Links and sessions


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("path", [*PAGES, "/settings/", "/settings/x", "/settings/x/y", "/settings/posts/1/delete"])
def test_without_a_session_the_page_says_just_that(stranger, client, method, path):
    for each in (stranger, client):  # a key is no session
        answer = each.open(path, method=method)
        assert (answer.status_code, answer.mimetype) == (403, "text/html")
        if method != "HEAD":
            assert said(answer) == [NO_SESSION]


def test_a_link_works_once(app, database, stranger):
    link = database.write(keys.add_link)
    for _ in range(2):  # To look at it uses nothing up.
        page = stranger.get(f"/settings/open?link={link}")
        assert (page.status_code, f'name="link" value="{link}"' in page.text) == (200, True)
    assert stranger.post("/settings/open", data={"link": link}).status_code == 303
    assert [stranger.get(path).status_code for path in PAGES] == [200] * 4
    thief = app.test_client()
    answer = thief.post("/settings/open", data={"link": link})
    assert (answer.status_code, said(answer)) == (404, [NO_LINK])
    answer = thief.get(f"/settings/open?link={link}")
    assert (answer.status_code, said(answer)) == (404, [NO_LINK])
    assert thief.get("/settings").status_code == 403


def test_a_link_works_for_ten_minutes_and_a_session_for_twelve_hours(database, stranger, clock, count):
    link = database.write(keys.add_link)
    clock.now += 600
    assert stranger.post("/settings/open", data={"link": link}).status_code == 404
    link = database.write(keys.add_link)
    clock.now += 599
    assert stranger.post("/settings/open", data={"link": link}).status_code == 303
    clock.now += 12 * 3600 - 1
    assert stranger.get("/settings").status_code == 200
    clock.now += 1
    assert stranger.get("/settings").status_code == 403
    database.write(keys.add_link)
    assert count(Session) == 1  # What is over is deleted.


def test_a_link_is_no_session_and_a_session_no_link(app, database, stranger, owner):
    stranger.set_cookie("blogapi", database.write(keys.add_link), path="/settings")
    assert stranger.get("/settings").status_code == 403
    cookie = owner.get_cookie("blogapi", path="/settings")
    assert stranger.post("/settings/open", data={"link": cookie.value}).status_code == 404


@pytest.mark.parametrize(
    ("url", "name", "secure"),
    [("http://127.0.0.1:8000", "blogapi", ""), ("https://blog.example.org", "__Secure-blogapi", "Secure; ")],
)
def test_the_cookie_is_for_this_page_alone(config, clock, url, name, secure):
    app = create_app(replace(config, url=url), clock)
    database = app.extensions["blogapi"].database
    answer = app.test_client().post("/settings/open", data={"link": database.write(keys.add_link)})
    database.close()
    token = r"blog_session_[A-Za-z0-9_-]{43}"
    cookie = re.sub("Expires=[^;]+; ", "", answer.headers["Set-Cookie"])
    assert re.fullmatch(f"{name}={token}; Max-Age=43200; {secure}HttpOnly; Path=/settings; SameSite=Strict", cookie)


def test_ending_a_session_ends_it_for_whoever_has_its_cookie(app, database, owner):
    thief = app.test_client()
    thief.set_cookie("blogapi", owner.get_cookie("blogapi", path="/settings").value, path="/settings")
    other = enter(app, database)
    assert thief.get("/settings").status_code == 200
    assert send(owner, "/settings/end").status_code == 303
    assert [each.get("/settings").status_code for each in (owner, thief, other)] == [403, 403, 200]


def test_sessions_are_known_by_digests_only(database, owner):
    token = owner.get_cookie("blogapi", path="/settings").value
    (row,) = database.rows(Session.select())
    assert row == (keys.digest_of(token), "session", "2026-11-21T00:00:00Z")


def test_the_command_line_prints_a_link_and_ends_all_sessions(tmp_path):
    with Server(tmp_path / "blog.db", BLOGAPI_URL="http://127.0.0.1:81/") as service:
        link = service.blogapi("settings").stdout
        match = re.fullmatch(r"http://127\.0\.0\.1:81/settings/open\?link=(blog_link_[A-Za-z0-9_-]{43})\n", link)
        unused = service.blogapi("settings").stdout
        content = "application/x-www-form-urlencoded"
        with service.connect() as sock:
            body = f"link={match[1]}"
            lines = ["POST /settings/open HTTP/1.1", "Host: a", f"Content-Type: {content}", "Connection: close"]
            sock.sendall("\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode())
            answer = sock.makefile().read()
        cookie = re.search("Set-Cookie: ([^;]+);", answer)[1]
        assert status(service, cookie) == 200
        service.stop()
        service.start()
        assert status(service, cookie) == 200
        assert service.blogapi("settings", "--end").stdout == ""
        assert status(service, cookie) == 403
        with closing(sqlite3.connect(service.database)) as connection:
            assert connection.execute("SELECT count(*) FROM session").fetchone() == (0,)
        path = unused.strip().removeprefix("http://127.0.0.1:81")
        assert status(service, cookie, path) == 404
        service.stop()
        secret = cookie.partition("=")[2]
        assert [text for text in (match[1], path[-43:], secret) if text in service.log] == []
        assert "GET /settings/open?link=blog_[masked]" in service.log


def status(service, cookie, path="/settings"):
    with service.connect() as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n".encode())
        return int(sock.makefile().read().split()[1])


# Forms


def test_a_change_takes_the_token_of_its_own_form(app, database, owner, post, count):
    post()
    beside_it = form_token(owner, "/settings/posts/1/publish")
    of_another_session = form_token(enter(app, database), "/settings/posts/1/delete")
    for token in ("", "é", beside_it, of_another_session):
        answer = owner.post("/settings/posts/1/delete", data={"form_token": token})
        assert (answer.status_code, answer.mimetype) == (403, "text/html")
        assert said(answer) == ["This form is not of this session. Nothing was changed; open the page anew."]
    assert owner.get("/settings/posts/1/delete").status_code == 404
    assert pages.counts(database)["draft"] == 1
    done(owner, "/settings/posts/1/delete", "It is deleted.")
    assert pages.counts(database)["draft"] == 0


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_from_elsewhere_can_send_nothing(owner, database, stranger, site):
    headers = {"Sec-Fetch-Site": site}
    token = form_token(owner, "/settings/keys/create")
    answer = owner.post(
        "/settings/keys/create", data={"form_token": token, "name": "laptop", "scope": "full"}, headers=headers
    )
    assert (answer.status_code, said(answer)) == (
        403,
        ["A page from elsewhere has sent this form. Nothing was changed."],
    )
    link = database.write(keys.add_link)
    assert stranger.post("/settings/open", data={"link": link}, headers=headers).status_code == 403
    assert list(keys.listing(database)) == []


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"{}", "application/json", 415),
        (b"a=1", None, 415),
        (b"name=" + b"x" * 65536, "application/x-www-form-urlencoded", 413),
        (b"&".join([b"a=1"] * 101), "application/x-www-form-urlencoded", 400),
        (b"name=%ff", "application/x-www-form-urlencoded", 400),
        (b"name=\xff", "application/x-www-form-urlencoded", 400),
        (b"", "application/x-www-form-urlencoded", 403),
    ],
)
def test_a_body_that_is_no_form_is_refused_with_a_page(owner, body, content_type, expected):
    answer = owner.post("/settings/keys/create", data=body, content_type=content_type)
    assert (answer.status_code, answer.mimetype) == (expected, "text/html")


@pytest.mark.parametrize(("query", "marked"), [("", ["All"]), ("?status=draft", ["Draft"]), ("?q=draft", [])])
def test_the_filter_that_is_on_is_marked(owner, query, marked):
    assert re.findall(r'aria-current="true">\s*(\w+)', owner.get(f"/settings/posts{query}").text) == marked


def test_no_answer_is_stored_framed_or_told_to_other_pages(owner, stranger):
    for client, path in [*((owner, path) for path in (*PAGES, "/settings/x")), (stranger, "/settings/open")]:
        headers = client.get(path).headers
        assert headers.getlist("Cache-Control") == ["no-store"]
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        policy = headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} < set(policy)


def test_what_is_not_there_is_a_page_too(owner):
    for path in ("/settings/x", "/settings/", "/settings/x/y"):
        answer = owner.get(path)
        assert (answer.status_code, said(answer)) == (404, ["no such path"])
    token = form_token(owner, "/settings/end")
    assert owner.post("/settings/x", data={"form_token": token}).status_code == 403


def test_a_database_that_another_program_keeps_is_a_page(config, owner, database):
    token = form_token(owner, "/settings/keys/create")
    with closing(sqlite3.connect(config.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = owner.post("/settings/keys/create", data={"form_token": token, "name": "laptop", "scope": "full"})
    assert (answer.status_code, answer.mimetype, answer.headers["Retry-After"]) == (503, "text/html", "1")
    assert said(answer) == ["the database is busy; nothing was changed"]


# Keys


def test_a_key_is_made_shown_once_and_works(owner, stranger):
    answer = send(owner, "/settings/keys/create", name=" laptop ", scope="full")
    key, line = (unescape(text) for text in re.findall(r"<code id=[^>]+>([^<]+)</code>", answer.text))
    assert line == f"curl 'http://127.0.0.1:8000/v1/posts?limit=1' -H 'Authorization: Bearer {key}'"
    assert stranger.get("/v1/posts", headers={"Authorization": f"Bearer {key}"}).status_code == 200
    page = owner.get("/settings/keys").text
    assert (key in page, f"…{key[-4:]}" in page) == (False, True)
    assert re.findall("<dd>(?:<time[^>]+>)?([^<]+)", page) == [
        "2026-11-20 12:00 UTC",
        "2026-11-20",
        "1 of 1000000 requests",
    ]


def test_a_key_can_be_one_that_may_do_less(owner, stranger):
    answer = send(owner, "/settings/keys/create", name="site", scope="published-only")
    key = re.search("blog_[A-Za-z0-9_-]{43}", answer.text)[0]
    headers = {"Authorization": f"Bearer {key}"}
    assert stranger.get("/v1/posts", headers=headers).status_code == 200
    assert stranger.post("/v1/posts", headers=headers).status_code == 403
    assert "May read published posts and their tags." in owner.get("/settings").text


@pytest.mark.parametrize("fields", [{}, {"scope": ""}, {"scope": "all"}])
def test_a_key_must_be_one_that_there_can_be(owner, fields):
    answer = send(owner, "/settings/keys/create", name="site", **fields)
    assert said(answer) == ["scope: must be one of full, read-only, published-only"]


def test_a_key_is_regenerated_and_revoked(owner, stranger, database):
    def status(key):
        return stranger.get("/v1/posts", headers={"Authorization": f"Bearer {key}"}).status_code

    old = add_key(database, "a <b>")
    answer = send(owner, "/settings/keys/regenerate", name="a <b>")
    new = re.search("blog_[A-Za-z0-9_-]{43}", answer.text)[0]
    assert (status(old), status(new)) == (401, 200)
    done(owner, "/settings/keys/revoke", "The key is revoked.", name="a <b>")
    assert status(new) == 401


def test_a_key_that_cannot_be_made_is_told(owner, database):
    add_key(database, "laptop")
    answer = send(owner, "/settings/keys/create", name="laptop", scope="full")
    assert (answer.status_code, said(answer)) == (400, ["there is a key called 'laptop' already"])
    answer = send(owner, "/settings/keys/create", name=" ", scope="full")
    assert said(answer)[0].startswith("the name of a key must have 1 to 100 characters")
    for action in ("regenerate", "revoke"):
        answer = send(owner, f"/settings/keys/{action}", name="x<y")
        assert (answer.status_code, said(answer)) == (400, ["there is no key called 'x<y'"])


def test_many_keys_come_in_pages(owner, database):
    def add(tx):
        for number in range(250):
            keys.add(tx, f"key & {number:03}", f"blog_{number}")

    database.write(add)
    found, path = [], "/settings/keys"
    while path:
        page = owner.get(path).text
        found += re.findall(r"<bdi>(key &amp; \d+)</bdi>", page)
        link = re.search(r'href="([^"]+)">More keys', page)
        path = link and unescape(link[1])
    assert found == [f"key &amp; {number:03}" for number in range(250)]


# Webhooks


def test_a_webhook_is_added_turned_off_and_on_and_deleted(owner, database, count):
    fields = {"url": " http://8.8.8.8/hook ", "events": ["post.created", "post.published"]}
    answer = send(owner, "/settings/webhooks/create", **fields)
    secret = unescape(re.search("whsec_[^<]+", answer.text)[0])
    (webhook,) = webhooks.listing(database)
    assert webhook == (1, "http://8.8.8.8/hook", fields["events"], True, "2026-11-20T12:00:00Z")
    assert database.row(Webhook.select(Webhook.secret)) == (secret,)
    assert "whsec_" not in done(owner, "/settings/webhooks/1/turn-off", "The webhook is off.").text
    assert not webhooks.find(database, 1).active
    done(owner, "/settings/webhooks/1/turn-on", "The webhook is on.")
    assert webhooks.find(database, 1).active
    done(owner, "/settings/webhooks/1/delete", "It is deleted.")
    assert count(Webhook) == 0


def test_a_webhook_is_pinged_and_its_deliveries_are_shown_and_sent_again(owner, webhook, receiver, send, post, clock):
    webhook()
    done(owner, "/settings/webhooks/1/ping", "A ping is on its way.")
    assert "not sent yet" in owner.get("/settings/webhooks").text
    send()
    post()
    receiver.status = 500
    send()
    rows = re.findall(
        r'<span class="state ?\w*">(\w+)</span>\s*<span>([\w.]+)</span>', owner.get("/settings/webhooks").text
    )
    assert rows == [("pending", "post.created"), ("delivered", "ping")]
    shown = re.sub("<[^>]+>", "", owner.get("/settings/webhooks").text)
    assert "2026-11-20 12:00 UTC · 500 · again 2026-11-20 12:00 UTC" in shown
    assert "2026-11-20 12:00 UTC · 204" in shown
    receiver.status = 204
    action = f"/settings/webhooks/1/{receiver.messages[0].id}/resend"
    done(owner, action, "It is on its way again.")
    send()
    assert receiver.types == ["ping", "post.created", "ping"]
    assert "204 after 2 attempts" in re.sub("<[^>]+>", "", owner.get("/settings/webhooks").text)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "example.org", "events": "ping"}, "url: must be an absolute http or https URL without white space"),
        ({"url": "http://127.0.0.1", "events": "ping"}, "url: 127.0.0.1"),
        ({"url": "http://8.8.8.8"}, "events: must have 1 to"),
        ({"url": "http://8.8.8.8", "events": "post.x"}, "events[0]: must be one of"),
        ({}, "url: "),
    ],
)
def test_a_webhook_that_the_api_would_refuse_is_refused(owner, count, fields, message):
    answer = send(owner, "/settings/webhooks/create", **fields)
    assert (answer.status_code, said(answer)[0].startswith(message)) == (400, True), said(answer)
    assert count(Webhook) == 0


# Posts


def test_posts_are_published_made_drafts_again_and_deleted(owner, client, post):
    post(title="A title")
    assert done(owner, "/settings/posts/1/publish", "The post is published.").text.count("Unpublish") == 1
    assert client.get("/v1/posts/1").json["published_at"] == "2026-11-20T12:00:00Z"
    done(owner, "/settings/posts/1/unpublish", "The post is a draft.")
    assert client.get("/v1/posts/1").json["status"] == "draft"
    done(owner, "/settings/posts/1/delete", "It is deleted.")
    assert client.get("/v1/posts").json == []


def test_the_list_stays_as_it_was_asked_for(owner, post):
    post(status="published")
    post()
    page = done(owner, "/settings/posts/2/publish?status=draft", "The post is published.")
    assert said(page)[1:] == ["There are no such posts."]


def test_posts_are_counted_by_status_as_of_now(owner, client, post, clock, database):
    for status in ("published", "draft", "draft"):
        post(status=status)
    client.patch("/v1/posts/2", json={"status": "scheduled", "published_at": "2026-11-20T13:00:00Z"})
    client.patch("/v1/posts/1", json={"status": "archived"})
    assert pages.counts(database) == {"published": 0, "draft": 1, "scheduled": 1, "archived": 1}
    clock.now += 3600
    assert pages.counts(database) == {"published": 1, "draft": 1, "scheduled": 0, "archived": 1}
    page = owner.get("/settings/posts?status=published").text
    assert re.findall(r">(\w+) <b>(\d+)</b>", page) == [
        ("Published", "1"),
        ("Draft", "1"),
        ("Scheduled", "0"),
        ("Archived", "1"),
    ]
    assert re.findall(r'<h2 id="post-(\d+)">', page) == ["2"]


def test_counting_reads_an_index_and_has_a_bound(plan, database):
    assert "SEARCH t1 USING COVERING INDEX post_status (status=?)" in plan(pages._count)
    assert any("INDEX schedule_due (published_at<?)" in step for step in plan(pages._count_due))
    assert all("LIMIT 100000)" in database.engine.statement(each).text for each in (pages._count, pages._count_due))


def test_the_latest_ten_are_shown_and_older_ones_follow(owner, post):
    for _ in range(21):
        post()
    found, path = [], "/settings/posts?status=draft"
    while path:
        page = owner.get(path).text
        ids = re.findall(r'<h2 id="post-(\d+)">', page)
        assert len(ids) <= 10
        found += ids
        link = re.search(r'href="([^"]+)">Older posts', page)
        path = link and unescape(link[1])
    assert found == [str(number) for number in range(21, 0, -1)]


def test_posts_are_searched(owner, post):
    for title in ("Café & Käse", "Brot", "Kaffee"):
        post(title=title)
    page = owner.get("/settings/posts?q=cafe").text
    assert re.findall("<bdi>(.*?)</bdi>", page) == ["Café &amp; Käse"]
    assert 'name="q" value="cafe"' in page
    answer = owner.get("/settings/posts?q=?!")
    assert (answer.status_code, said(answer)) == (400, ["q: must have a letter or a digit"])
    assert len(re.findall("<bdi>", owner.get("/settings/posts?q=").text)) == 3
    page = done(owner, "/settings/posts/1/publish?q=kase", "The post is published.")
    assert 'name="q" value="kase"' in page.text


def test_a_text_is_text_whatever_it_is(owner, post, database):
    hostile = "<script>alert(1)</script>\"'&amp;{{7*7}}"
    post(title=hostile, tags=["<i>"], slug="a")
    add_key(database, hostile)
    database.write(webhooks.add, "http://8.8.8.8/?<b>", ["ping"])
    for path in PAGES:
        page = owner.get(path).text
        assert re.search("<script>|<i>|<b>[^0-9]", page) is None, path
    assert unescape(re.search("<bdi>(.*?)</bdi>", owner.get("/settings/posts").text)[1]) == hostile


def test_a_damaged_post_hides_no_other(owner, post, damage):
    post(title="Gone")
    post(title="Here")
    damage("post", "document", "no document")
    page = owner.get("/settings/posts")
    assert (page.status_code, "Here" in page.text) == (200, True)


@pytest.mark.parametrize("query", ["status=x", "before=x", "limit=3", "nothing=1"])
def test_a_query_that_the_page_does_not_have_is_refused(owner, query):
    assert owner.get(f"/settings/posts?{query}").status_code == 400
