"""The sessions of the owner's page, the links that open them, and the protection of its forms."""

import re

import pytest
import urllib3

from blogapi.storage import keys
from blogapi.wings.owner import sessions
from blogapi.wings.owner.posts import counts
from blogapi.wings.owner.sessions import OwnerSession
from tests.cases import cases
from tests.databases import busy, execute
from tests.owner.pages import NO_SESSION, SECTIONS, Page, enter, send, view
from tests.service import Server

NO_LINK = "No such link: it was used before, or is older than ten minutes."
PATHS = ("/settings", *SECTIONS, "/settings/posts/new", "/settings/posts/1/edit", "/settings/", "/settings/x/y")


def open_session(client, link):
    return send(client, "/settings/open", {"link": link})


def open_by_link(client):
    return open_session(client, client.application.extensions["blogapi"].database.write(sessions.add, sessions.LINK))


@cases("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@cases("path", [*PATHS, "/settings/posts/1/delete", "/settings/posts/1/share"])
def test_without_a_session_the_page_says_only_that(stranger, client, method, path):
    for each in (stranger, client):  # a key is not a session
        answer = each.open(path, method=method, content_type="multipart/form-data; boundary=x")
        assert (answer.status_code, answer.mimetype) == (403, "text/html")
        if method != "HEAD":
            kept = "The text that you typed in this browser is kept. It appears again once you have signed in."
            assert Page(each, answer).said == [NO_SESSION, *[kept] * path.endswith(("new", "edit"))]


def test_a_link_works_once(app, config, database, stranger):
    link = database.write(sessions.add, sessions.LINK)
    for _ in range(2):  # Looking at it does not use it up.
        page = view(stranger, f"/settings/open?link={link}")
        assert (page.status, page.form("Sign in")[1]["link"]) == (200, link)
    assert open_session(stranger, link).status_code == 303
    assert [stranger.get(path).status_code for path in SECTIONS] == [200] * len(SECTIONS)
    thief = app.test_client()
    for answer in (open_session(thief, link), thief.get(f"/settings/open?link={link}")):
        assert (answer.status_code, Page(thief, answer).said) == (404, [NO_LINK])
    assert thief.get("/settings").status_code == 403
    with busy(config.database):  # A link that is not valid writes nothing, which would be 503.
        assert open_session(thief, "blog_link_x").status_code == 404
    thief.set_cookie("blogapi", database.write(sessions.add, sessions.LINK), path="/settings")
    assert thief.get("/settings").status_code == 403  # A link is not a session, and a session is not a link.
    assert open_session(thief, stranger.get_cookie("blogapi", path="/settings").value).status_code == 404


@pytest.mark.both_engines
def test_a_link_works_for_ten_minutes_and_a_session_for_twelve_hours(database, stranger, clock, count):
    link = database.write(sessions.add, sessions.LINK)
    clock.now += 600
    assert open_session(stranger, link).status_code == 404
    link = database.write(sessions.add, sessions.LINK)
    clock.now += 599
    assert open_session(stranger, link).status_code == 303
    token = stranger.get_cookie("blogapi", path="/settings").value
    (row,) = database.rows(OwnerSession.select().where(OwnerSession.kind == "session"))
    assert (row[0], token in str(row)) == (keys.digest_of(token), False)
    clock.now += 12 * 3600 - 1
    assert stranger.get("/settings/keys").status_code == 200
    clock.now += 1
    assert stranger.get("/settings/keys").status_code == 403
    database.write(sessions.add, sessions.LINK)
    assert count(OwnerSession) == 1  # Ended ones are deleted.


@pytest.mark.parametrize(
    ("url", "name", "secure"),
    [("http://127.0.0.1:8000", "blogapi", ""), ("https://blog.example.org", "__Secure-blogapi", "Secure; ")],
)
def test_the_cookie_is_only_for_this_page(own_app, url, name, secure):
    answer = open_by_link(own_app(url=url).test_client())
    token = r"blog_session_[A-Za-z0-9_-]{43}"
    cookie = re.sub("Expires=[^;]+; ", "", answer.headers["Set-Cookie"])
    assert re.fullmatch(f"{name}={token}; Max-Age=43200; {secure}HttpOnly; Path=/settings; SameSite=Strict", cookie)


def test_ending_a_session_ends_it_for_every_copy_of_its_cookie(app, owner):
    thief = app.test_client()
    thief.set_cookie("blogapi", owner.get_cookie("blogapi", path="/settings").value, path="/settings")
    other = enter(app)
    assert thief.get("/settings/keys").status_code == 200
    assert view(owner, "/settings").press("Yes, sign out").said == [NO_SESSION]
    assert [each.get("/settings/keys").status_code for each in (owner, thief, other)] == [403, 403, 200]


@cases(
    ("user_agent", "name"),
    ("Mozilla/5.0 (Android 15; Mobile; rv:143.0) Gecko/143.0 Firefox/143.0", "Firefox on Android"),
    ("Mozilla/5.0 (Windows NT 10.0) Chrome/156.0 Safari/537.36 Edg/156.0", "Edge on Windows"),
    ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1", "Safari on iPhone"),
    ("", "An unknown browser"),
    ("x" * 200, "x" * 60),
)
def test_a_session_is_named_after_its_browser_and_system(app, user_agent, name):
    client = enter(app, browser=user_agent)
    assert f"{name} this one" in view(client, "/settings/sessions").all("h2")


@pytest.mark.slow
def test_the_command_line_prints_a_link_or_a_code_and_ends_all_sessions(tmp_path):
    with Server(tmp_path / "blog.db", BLOGAPI_URL="http://127.0.0.1:81/") as service:
        link = service.blogapi("login").stdout
        match = re.fullmatch(r"http://127\.0\.0\.1:81/settings/open\?link=(blog_link_[A-Za-z0-9_-]{43})\n", link)
        unused = service.blogapi("login").stdout
        days = service.blogapi("login", "--days", "30", "--qr")
        assert (days.stdout[:49], len(days.stdout.splitlines()) > 15) == (link[:49], True)
        assert "A phone cannot open http://127.0.0.1" in days.stderr
        assert service.blogapi("login", "--days", "366").returncode == 2
        address = f"http://127.0.0.1:{service.port}/settings/open"
        answer = urllib3.request("POST", address, fields={"link": match[1]}, redirect=False)
        cookie = answer.headers["Set-Cookie"].partition(";")[0]
        in_fields_of_their_own = f"a=b\r\nCookie: {cookie}\r\nCookie: c=d"  # as in HTTP/2
        assert (status(service, cookie), status(service, in_fields_of_their_own)) == (200, 200)
        service.stop()
        service.start()
        assert status(service, cookie) == 200
        assert service.blogapi("login", "--end").stdout == ""
        assert status(service, cookie) == 403
        assert execute(service.database, "SELECT count(*) FROM owner_session") == [(0,)]
        path = unused.strip().removeprefix("http://127.0.0.1:81")
        assert status(service, cookie, path) == 404
        service.stop()
        secret = cookie.partition("=")[2]
        assert [text for text in (match[1], path[-43:], secret) if text in service.log] == []
        assert "GET /settings/open?link=blog_[masked]" in service.log


def status(service, cookie, path="/settings/keys"):
    with service.connect() as sock:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n".encode())
        return int(sock.makefile().read().split()[1])


def test_a_change_needs_the_token_of_its_own_form(app, database, owner, post):
    post()
    fields = view(owner, "/settings/posts/1").form("Publish now")[1]
    other = view(enter(app), "/settings/posts/1").form("Yes, delete")[1]
    for token in ("", "é", fields["form_token"], other["form_token"]):
        page = Page(owner, send(owner, "/settings/posts/1/delete", {"form_token": token}))
        assert (page.status, "to an earlier session. Reload" in page.said[0]) == (403, True)
    assert owner.get("/settings/posts/1/delete").status_code == 404
    assert counts(database)["draft"] == 1
    view(owner, "/settings/posts/1").press("Yes, delete")
    assert counts(database)["draft"] == 0


@cases("site", ["cross-site", "same-site"])
def test_another_site_cannot_send_anything(owner, database, stranger, site):
    headers = {"Sec-Fetch-Site": site}
    action, fields = view(owner, "/settings/keys").form("Create key")
    for client, path, sent in (
        (owner, action, fields | {"name": "laptop"}),
        (stranger, "/settings/open", {"link": database.write(sessions.add, sessions.LINK)}),
    ):
        answer = client.post(path, data=sent, headers=headers, content_type="multipart/form-data")
        assert answer.status_code == 403
        assert Page(client, answer).said[0] == "Nothing was changed, because another site sent this form."
    assert keys.listing(database) == []


MULTIPART = "multipart/form-data; boundary=x"
PART = b'--x\r\nContent-Disposition: form-data; name="name"\r\n\r\n%b\r\n'


@cases(
    ("body", "content_type", "expected"),
    (b"{}", "application/json", 415),
    (b"a=1", None, 415),
    (b"a=1", "application/x-www-form-urlencoded", 415),
    (PART % (b"x" * 65536) + b"--x--", MULTIPART, 413),
    (PART % b"a" * 101 + b"--x--", MULTIPART, 400),
    (PART % b"a" + PART[:60], MULTIPART, 400),
    (PART % b"\xff" + b"--x--", MULTIPART, 400),
    (PART % b"a" + b"--x\r\nno name\r\n\r\n--x--", MULTIPART, 400),
    (b"x", MULTIPART, 400),
    (PART % b"a", "multipart/form-data", 400),
    (b"--x--", MULTIPART, 403),
)
def test_a_body_that_is_not_a_form_is_refused_with_a_page(owner, body, content_type, expected):
    answer = owner.post("/settings/keys/create", data=body, content_type=content_type)
    assert (answer.status_code, answer.mimetype) == (expected, "text/html")


def test_no_answer_is_stored_framed_or_revealed_to_other_pages(owner, stranger):
    for client, path in [*((owner, path) for path in PATHS), (stranger, "/settings/open")]:
        headers = client.get(path).headers
        expected = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
        expected |= {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}
        assert {name: headers.getlist(name) for name in expected} == {name: [expected[name]] for name in expected}
        policy = headers["Content-Security-Policy"].split("; ")
        assert {"default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"} < set(policy)


def test_an_unknown_path_is_answered_with_a_page(owner):
    for path in ("/settings/x", "/settings/x/y"):
        page = view(owner, path)
        assert (page.status, page.said[0]) == (404, "There is no such page.")
    assert send(owner, "/settings/x", view(owner, "/settings/keys").form("Yes, sign out")[1]).status_code == 403


def test_a_busy_database_is_answered_with_a_page(config, owner, impatient):
    action, fields = view(owner, "/settings/keys").form("Create key")
    with busy(config.database):
        page = Page(owner, send(owner, action, fields | {"name": "laptop"}))
    assert (page.status, page.headers["Retry-After"]) == (503, "1")
    assert page.said[0].startswith("The database is busy; nothing was changed")


def test_a_notice_is_shown_once_and_only_to_its_session(app, owner):
    page = view(owner, "/settings/keys").press("Create key", name="laptop")
    assert page.all(".new h2") == ["Copy the key laptop now"]
    assert view(owner, "/settings/keys").all(".new") == []
    action, fields = view(owner, "/settings/keys").form("Create key")
    send(owner, action, fields | {"name": "phone"})
    thief = enter(app)
    cookie = owner.get_cookie("blogapi-notice", path="/settings")
    assert (cookie.http_only, cookie.same_site, cookie.path, cookie.max_age) == (True, "Strict", "/settings", 60)
    for value in (cookie.value, "x", "x.y", f"{'0' * 64}.e30=", "é.e30="):
        thief.set_cookie("blogapi-notice", value, path="/settings")
        assert view(thief, "/settings/keys").all(".notice, .new") == [], value


def test_a_notice_waits_until_its_own_page_is_shown(owner, config):
    action, fields = view(owner, "/settings/keys").form("Create key")
    send(owner, action, fields | {"name": "laptop"})
    for path in ("/settings/nothing", "/settings/posts", "/settings/webhooks"):
        assert view(owner, path).all(".new, .notice") == []
    execute(config.database, "ALTER TABLE api_key RENAME TO away")
    assert view(owner, "/settings/keys").status == 503
    execute(config.database, "ALTER TABLE away RENAME TO api_key")
    assert owner.head("/settings/keys").status_code == 200
    assert view(owner, "/settings/keys").all(".new h2") == ["Copy the key laptop now"]


def test_every_address_is_below_the_path_of_the_public_address(own_app):
    client = own_app(url="https://example.org/blog").test_client()
    client.environ_base["wsgi.url_scheme"] = "https"
    answer = open_by_link(client)
    assert answer.headers["Location"] == "/blog/settings"
    name, value = answer.headers["Set-Cookie"].split(";")[0].split("=")
    assert "Path=/blog/settings;" in answer.headers["Set-Cookie"]
    client.set_cookie(name, value, path="/settings", secure=True)  # The proxy passes it on without the path.
    for path in ("/settings/keys", "/settings/posts", "/settings/posts/new", "/settings/webhooks", "/settings/x"):
        page = Page(client, client.get(path))
        addresses = [each.get(name) for each in page.soup.find_all() for name in ("href", "src", "action")]
        assert [each for each in addresses if each and not each.startswith(("/blog/", "#", "data:"))] == []
    action, fields = Page(client, client.get("/settings/posts/new")).form("Save draft")
    answer = send(client, action.removeprefix("/blog"), fields | {"title": "A", "content": "B"})
    assert answer.headers["Location"] == "/blog/settings/posts/1"


@pytest.mark.both_engines
def test_a_session_of_several_days_lasts_from_its_last_use(app, clock):
    day = 24 * 3600
    client = enter(app, days=7)
    for _ in range(5):
        clock.now += 6 * day
        assert client.get("/settings/posts").status_code == 200
    clock.now += 7 * day
    assert client.get("/settings/posts").status_code == 403


@cases(("days", "period"), [(0, "for twelve hours"), (1, "until 1 day after your last"), (30, "until 30 days after")])
def test_the_page_behind_a_link_says_how_long_its_session_lasts(stranger, database, days, period):
    database.write(sessions.end_all)
    link = database.write(sessions.add, sessions.LINK, days)
    page = view(stranger, f"/settings/open?link={link}")
    assert f"You stay signed in {period}" in page.text
    assert bool(page.soup.select("[name=stays]")) == (days == 0)
    page.press("Sign in", stays="on")
    assert [each.days for each in sessions.listing(database)] == [days or sessions.STAY_DAYS]


@pytest.mark.both_engines
def test_sessions_are_listed_and_ended(app, clock):
    phone = enter(app, 30, "Phone")
    clock.now += 60
    desk = enter(app, browser="<b>Desk")
    page = view(desk, "/settings/sessions")
    assert page.all("h2") == ["<b>Desk this one", "Phone"]
    assert "30 days after its last use" in page.all(".card")[1]
    digest = page.soup.select(".card [name=digest]")[1]["value"]
    token = page.soup.select(".card [name=form_token]")[1]["value"]
    send(desk, "/settings/sessions/end", {"digest": digest, "form_token": token})
    assert (phone.get("/settings/posts").status_code, desk.get("/settings/posts").status_code) == (403, 200)
    view(desk, "/settings/sessions").press("Yes, end all sessions")
    assert desk.get("/settings/posts").status_code == 403
