"""The owner's page in a real browser: used in every way, and kept from those who are not the owner."""

import http.client
import json
import re
import shlex
import sqlite3
import subprocess
from contextlib import closing

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.owner.pages import NO_SESSION
from tests.service import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def owner(window):
    window.enter()
    window.open("/settings/keys")
    return window


def status(service, key):
    service.key = key
    return service.request("GET", "/v1/posts")[0]


# The owner


def test_a_key_is_created_used_with_curl_regenerated_and_revoked(owner):
    owner.fill("name", "laptop")
    owner.click("Create key")
    key, line = owner.shown
    owner.service.request("POST", "/v1/posts", {"title": "Hello", "content": "Words."})
    ended = subprocess.run([*shlex.split(line), "--silent", "--show-error"], capture_output=True, timeout=20)
    assert [post["title"] for post in json.loads(ended.stdout)] == ["Hello"]
    owner.open("/settings/keys")
    facts = rf"laptop …{key[-4:]}\nMay do everything.\nCreated\n.*20.*M\nLast used\n20.*\nThis minute\n1 of 1000000"
    assert re.search(facts, owner.text)
    owner.click("Regenerate laptop")
    assert status(owner.service, key) == 200  # It asks first.
    owner.click("Yes, regenerate laptop")
    new, _ = owner.shown
    assert (status(owner.service, key), status(owner.service, new)) == (401, 200)
    owner.click("Revoke laptop")
    owner.click("Yes, revoke laptop")
    assert "“laptop” was revoked." in owner.text
    assert "laptop …" not in owner.text
    assert status(owner.service, new) == 401
    assert [entry["message"] for entry in owner.browser.get_log("browser")] == []


def test_a_key_is_copied(owner):
    owner.fill("name", "laptop")
    owner.click("Create key")
    rights = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": owner.url}
    owner.browser.execute_cdp_cmd("Browser.grantPermissions", rights)
    for label, text in zip(("Copy Key", "Copy A first request"), owner.shown, strict=True):
        owner.click(label)
        eventually(lambda text=text: read_clipboard(owner.browser) == text)
    assert owner.text.count("Copied") == 2


def read_clipboard(browser):
    return browser.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")


def test_a_webhook_is_added_pinged_sent_again_turned_off_and_deleted(owner, receiver):
    owner.click("Webhooks")
    owner.fill("url", receiver.url)
    owner.click("Add webhook")
    assert re.fullmatch("whsec_[A-Za-z0-9+/]{43}=", owner.shown[0])
    owner.click(f"Ping {receiver.url}")
    assert "A ping is on its way." in owner.text
    eventually(lambda: receiver.types == ["ping"])

    def is_shown(pattern):
        owner.open("/settings/webhooks")
        return re.search(pattern, owner.text)

    eventually(lambda: is_shown(r"delivered\nping\nSend again\nping of \S+\n.*20.*M · 204\n"))
    again = owner.browser.find_element(By.CSS_SELECTOR, "li button").accessible_name
    assert re.fullmatch(r"Send again ping of 20.*Z", again)
    owner.click(again)
    eventually(lambda: len(receiver.messages) == 2)
    assert receiver.messages[0].id == receiver.messages[1].id
    eventually(lambda: is_shown("204 after 2 attempts"))
    owner.click(f"Turn off {receiver.url}")
    owner.click(f"Turn on {receiver.url}")
    owner.click(f"Delete {receiver.url}")
    owner.click(f"Yes, delete {receiver.url}")
    assert receiver.url not in owner.text


def test_a_post_is_published_and_deleted(owner):
    post = owner.service.request("POST", "/v1/posts", {"title": "<b>Käse & 'Brot'", "content": "Words."})[2]
    owner.click("Posts")
    owner.click("<b>Käse & 'Brot'")
    owner.click("Publish <b>Käse & 'Brot'")
    assert owner.service.request("GET", f"/v1/posts/{post['id']}")[2]["status"] == "published"
    owner.click("Unpublish <b>Käse & 'Brot'")
    assert owner.service.request("GET", f"/v1/posts/{post['id']}")[2]["status"] == "draft"
    owner.click("Delete <b>Käse & 'Brot'")
    owner.click("Yes, delete <b>Käse & 'Brot'")
    assert owner.service.request("GET", f"/v1/posts/{post['id']}")[0] == 404


def test_a_key_is_created_without_scripts(window):
    window.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    window.enter()
    window.open("/settings/keys")
    window.fill("name", "laptop")
    window.click("Create key")
    assert status(window.service, window.shown[0]) == 200
    assert not window.browser.find_element(By.CSS_SELECTOR, ".copied button").is_displayed()
    window.click("Revoke laptop")
    window.click("Yes, revoke laptop")
    assert "“laptop” was revoked." in window.text


def test_a_key_is_created_and_revoked_with_the_keyboard(owner):
    owner.reach("Name")
    with owner.next_page():
        owner.press("laptop", Keys.ENTER)
    key, _ = owner.shown
    owner.reach("Revoke laptop")
    owner.press(Keys.ENTER)
    owner.reach("Yes, revoke laptop")
    with owner.next_page():
        owner.press(Keys.SPACE)
    assert "“laptop” was revoked." in owner.text
    assert status(owner.service, key) == 401


def test_nobody_is_kept_out_and_nothing_scrolls_sideways(window, axe, receiver):
    window.service.request("POST", "/v1/webhooks", {"url": receiver.url})
    window.service.request("POST", "/v1/webhooks", {"url": "http://127.0.0.1:1/" + "a" * 500})
    window.service.request("POST", "/v1/webhooks/1/ping")
    window.open()
    window.check(axe)
    window.browser.get(window.service.blogapi("settings").stdout.strip())
    window.check(axe)
    window.click("Open")
    window.open("/settings/keys")
    window.fill("name", "n" * 100)
    window.click("Create key")
    window.click(f"Revoke {'n' * 100}")
    window.check(axe)
    for path in ("/settings/webhooks", "/settings/posts", "/settings/posts?status=x"):
        window.open(path)
        window.check(axe)


# Others


def test_a_link_does_not_work_a_second_time(window):
    link = window.service.blogapi("settings").stdout.strip()
    window.browser.get(f"data:text/html,<a href={link}>in a mail</a>")  # The cookie is strict, and there all the same.
    with window.next_page():
        window.browser.find_element(By.TAG_NAME, "a").click()
    window.click("Open")
    assert (window.browser.current_url, "New post" in window.text) == (f"{window.url}/settings/posts", True)
    window.browser.delete_all_cookies()
    window.browser.get(link)
    assert "No such link" in window.text
    window.open()
    assert NO_SESSION in window.text


def test_an_old_session_is_none(owner):
    with closing(sqlite3.connect(owner.service.database, isolation_level=None)) as connection:
        connection.execute("UPDATE owner_session SET ends_at = '2026-01-01T00:00:00Z'")
    owner.fill("name", "laptop")
    owner.click("Create key")
    assert NO_SESSION in owner.text
    assert "laptop" not in owner.service.blogapi("keys", "list").stdout


def test_a_form_of_another_session_changes_nothing(owner):
    window = owner.browser.current_window_handle
    owner.browser.switch_to.new_window("tab")
    owner.enter()
    owner.browser.switch_to.window(window)
    owner.fill("name", "laptop")
    owner.click("Create key")
    assert "This form belongs to an earlier session. Nothing was changed." in owner.text
    assert "laptop" not in owner.service.blogapi("keys", "list").stdout


def test_a_form_on_a_page_from_elsewhere_changes_nothing(owner):
    token = owner.browser.find_element(By.CSS_SELECTOR, "form[action$=create] [name=form_token]").get_attribute("value")
    fields = f"<input name=name value=laptop><input name=form_token value={token}><button>Win</button>"
    form = f"<form method=post action={owner.url}/settings/keys/create>{fields}</form>"
    owner.browser.get(f"data:text/html,{form}")
    with owner.next_page():
        owner.browser.find_element(By.TAG_NAME, "button").click()
    assert "Another site sent this form. Nothing was changed." in owner.text
    assert "laptop" not in owner.service.blogapi("keys", "list").stdout
    owner.open()
    assert "New post" in owner.text


def test_a_stolen_cookie_is_worth_nothing_after_all_sessions_are_ended(owner):
    cookie = owner.browser.get_cookie("blogapi")
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/settings")

    def answer():
        connection = http.client.HTTPConnection("127.0.0.1", owner.service.port, timeout=20)
        connection.request("GET", "/settings/keys", headers={"Cookie": f"blogapi={cookie['value']}"})
        with closing(connection):
            return connection.getresponse().status

    assert answer() == 200
    assert owner.service.blogapi("settings", "--end").returncode == 0
    assert answer() == 403
    owner.open()
    assert NO_SESSION in owner.text
