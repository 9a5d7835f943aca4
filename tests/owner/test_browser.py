"""The owner's page in a real browser: used in every way, and protected from everybody else."""

import json
import re
import shlex
import subprocess

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.service import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def window(window):
    window.open("/settings/keys")
    return window


def status(service, key):
    return service.request("GET", "/v1/posts", Authorization=f"Bearer {key}")[0]


def test_a_new_key_and_the_command_shown_with_it_can_be_copied_and_work(window):
    window.fill(name="laptop", scope="Do everything")
    window.click("Create key")
    key, line = window.shown
    rights = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"], "origin": window.url}
    window.browser.execute_cdp_cmd("Browser.grantPermissions", rights)
    read = "navigator.clipboard.readText().then(arguments[0], arguments[0])"
    for label, text in (("Copy Key", key), ("Copy A first request", line)):
        window.click(label)
        eventually(lambda text=text: window.browser.execute_async_script(read) == text)
    assert window.text.count("Copied") == 2
    window.service.request("POST", "/v1/posts", {"title": "Hello", "content": "Words."})
    ended = subprocess.run([*shlex.split(line), "--silent", "--show-error"], capture_output=True, timeout=60)
    assert [post["title"] for post in json.loads(ended.stdout)] == ["Hello"]
    window.open("/settings/keys")
    facts = rf"laptop …{key[-4:]}\nDo everything\nCreated\n\w+ \d+, .*M\nLast used\n\w+ \d+\n.*\n1 of 1,000,000"
    assert re.search(facts, window.text)
    assert window.browser.problems() == []


@pytest.mark.parametrize("with_scripts", [True, False])
def test_a_key_is_created_and_revoked_with_the_keyboard(visitor, with_scripts):
    visitor.browser.run_scripts(with_scripts)
    visitor.enter()
    visitor.open("/settings/keys")
    visitor.reach("Name")
    with visitor.next_page():
        visitor.press("laptop", Keys.ENTER)
    key, _ = visitor.shown
    assert status(visitor.service, key) == 200
    assert visitor.browser.find_element(By.CSS_SELECTOR, ".copied button").is_displayed() == with_scripts
    visitor.reach("Revoke laptop")
    visitor.press(Keys.ENTER)
    visitor.reach("Yes, revoke laptop")
    with visitor.next_page():
        visitor.press(Keys.SPACE)
    assert "“laptop” was revoked." in visitor.text
    assert status(visitor.service, key) == 401


def test_keys_and_webhooks_are_accessible_and_never_scroll_sideways(visitor, axe, receiver):
    visitor.service.request("POST", "/v1/webhooks", {"url": receiver.url})
    visitor.service.request("POST", "/v1/webhooks", {"url": "http://127.0.0.1:1/" + "a" * 500})
    visitor.service.request("POST", "/v1/webhooks/1/ping")
    visitor.check_each(axe, "/settings")
    visitor.browser.get(visitor.link())
    visitor.check(axe)
    visitor.click("Sign in")
    visitor.open("/settings/keys")
    visitor.fill(name="n" * 100)
    visitor.click("Create key")
    visitor.click(f"Revoke {'n' * 100}")
    visitor.check(axe)
    webhooks = "/settings/webhooks", "/settings/webhooks?after_seconds=60&body=dispatch", "/settings/webhooks/2/edit"
    visitor.check_each(axe, *webhooks, "/settings/posts?status=x", "/settings/sessions")


def test_a_link_in_an_email_opens_a_session(visitor):
    printed = visitor.service.blogapi("login").stdout.strip()
    link = printed.replace(f"http://127.0.0.1:{visitor.service.port}", visitor.url)
    visitor.browser.get(f"data:text/html,<a href={link}>in a mail</a>")  # The cookie is strict, but sent all the same.
    with visitor.next_page():
        visitor.browser.find_element(By.TAG_NAME, "a").click()
    visitor.click("Sign in")
    assert visitor.browser.current_url == f"{visitor.url}/settings/posts"
    assert "New post" in visitor.text


def test_a_form_on_another_site_changes_nothing(window):
    token = window.browser.find_element(By.CSS_SELECTOR, "form[action$=create] [name=form_token]")
    fields = "<input name=name value=laptop><button>Win</button>"
    fields += f"<input name=form_token value={token.get_attribute('value')}>"
    form = f"<form method=post action={window.url}/settings/keys/create>{fields}</form>"
    window.browser.get(f"data:text/html,{form}")
    with window.next_page():
        window.browser.find_element(By.TAG_NAME, "button").click()
    assert "Nothing was changed, because another site sent this form." in window.text
    assert "laptop" not in window.service.blogapi("keys", "list").stdout
    window.open()
    assert "New post" in window.text
