"""The owner's page in a real browser: used in every way, and kept from those who are not the owner."""

import http.client
import json
import re
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing, contextmanager, nullcontext

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from tests.owner.pages import NO_SESSION
from tests.service import Server, eventually

pytestmark = pytest.mark.slow

AXE = "const done = arguments[0]; axe.run().then(found => done(found.violations.map(each => each.id)))"


class Page:
    """The owner's page of a service, as it is seen and used."""

    def __init__(self, browser, service):
        self.browser = browser
        self.service = service
        self.url = f"http://127.0.0.1:{service.port}"

    def open(self, path="/settings"):
        self.browser.get(self.url + path)

    def enter(self):
        self.browser.get(self.service.blogapi("settings").stdout.strip())
        self.click("Open")

    def click(self, label):
        """Click the first button, or what asks again, whose name this is to a screen reader."""
        buttons = self.browser.find_elements(By.CSS_SELECTOR, "main button, main summary, header button, a")
        button = next(each for each in buttons if each.is_displayed() and each.accessible_name.strip() == label)
        leaves = button.tag_name == "a" or (button.tag_name == "button" and button.get_attribute("type") == "submit")
        with self.next_page() if leaves else nullcontext():
            button.click()

    @contextmanager
    def next_page(self):
        """Wait for the page that what happens in the block leads to."""
        self.browser.execute_script("document.documentElement.dataset.old = true")
        yield
        is_new = "return document.readyState === 'complete' && !document.documentElement.dataset.old"
        # Between two pages chromedriver has errors of many kinds.
        wait = WebDriverWait(self.browser, 20, ignored_exceptions=[WebDriverException])
        wait.until(lambda browser: browser.execute_script(is_new))

    def fill(self, name, text):
        self.browser.find_element(By.NAME, name).send_keys(text)

    @property
    def text(self):
        return self.browser.find_element(By.TAG_NAME, "main").text

    @property
    def shown(self):
        """What is shown only once, in order."""
        return [each.text for each in self.browser.find_elements(By.CSS_SELECTOR, ".new code")]


@pytest.fixture
def page(browser, tmp_path):
    with Server(tmp_path / "blog.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
        yield Page(browser, service)


@pytest.fixture
def owner(page):
    page.enter()
    return page


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The script of axe-core, which finds what keeps people out."""
    folder, npm = tmp_path_factory.mktemp("axe"), shutil.which("npm")
    command = [npm, "install", "--prefix", folder, "--ignore-scripts", "--no-audit", "axe-core@4.14.1"]
    if not npm or subprocess.run(command, capture_output=True, timeout=120).returncode:
        pytest.skip("axe-core is not to be had from npm")
    return (folder / "node_modules/axe-core/axe.min.js").read_text()


def status(service, key):
    service.key = key
    return service.request("GET", "/v1/posts")[0]


# The owner


def test_a_key_is_made_used_with_curl_regenerated_and_revoked(owner):
    owner.fill("name", "laptop")
    owner.click("Create key")
    key, line = owner.shown
    owner.service.request("POST", "/v1/posts", {"title": "Hello", "content": "Words."})
    ended = subprocess.run([*shlex.split(line), "--silent", "--show-error"], capture_output=True, timeout=20)
    assert [post["title"] for post in json.loads(ended.stdout)] == ["Hello"]
    owner.open("/settings/keys")
    facts = rf"laptop …{key[-4:]}\nMay do everything.\nCreated\n20.* UTC\nLast used\n20.*\nThis minute\n1 of 1000000"
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

    eventually(lambda: is_shown(r"delivered\nping\nSend again\nping of \S+\n20.* · 204\n"))
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


def test_a_key_is_made_without_scripts(page):
    page.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    page.enter()
    page.fill("name", "laptop")
    page.click("Create key")
    assert status(page.service, page.shown[0]) == 200
    assert not page.browser.find_element(By.CSS_SELECTOR, ".copied button").is_displayed()
    page.click("Revoke laptop")
    page.click("Yes, revoke laptop")
    assert "“laptop” was revoked." in page.text


def test_a_key_is_made_and_revoked_with_the_keyboard(owner):
    def press(*keys):
        ActionChains(owner.browser).send_keys(*keys).perform()

    def reach(name):
        for _ in range(20):
            press(Keys.TAB)
            focused = owner.browser.switch_to.active_element
            if focused.accessible_name.strip() == name:
                assert focused.value_of_css_property("outline-style") == "solid"
                return
        raise AssertionError(name)

    reach("Name")
    with owner.next_page():
        press("laptop", Keys.ENTER)
    key, _ = owner.shown
    reach("Revoke laptop")
    press(Keys.ENTER)
    reach("Yes, revoke laptop")
    with owner.next_page():
        press(Keys.SPACE)
    assert "“laptop” was revoked." in owner.text
    assert status(owner.service, key) == 401


def test_nobody_is_kept_out_and_nothing_scrolls_sideways(page, axe, receiver):
    def check(name):
        for width, theme in ((400, "light"), (400, "dark"), (1280, "dark"), (1280, "light")):
            features = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", features)
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            page.browser.execute_script(axe)
            assert page.browser.execute_async_script(AXE) == [], (name, width, theme)
            assert page.browser.execute_script("return document.documentElement.scrollWidth") <= width, name

    for title in ("W" * 255, "\u202e" + "🧁" * 254, "<b>"):
        page.service.request("POST", "/v1/posts", {"title": title, "content": "Words.", "tags": ["x" * 64]})
    page.service.request("POST", "/v1/webhooks", {"url": receiver.url})
    page.service.request("POST", "/v1/webhooks", {"url": "http://127.0.0.1:1/" + "a" * 500})
    page.service.request("POST", "/v1/webhooks/1/ping")
    page.open()
    check("without a session")
    page.browser.get(page.service.blogapi("settings").stdout.strip())
    check("a link")
    page.click("Open")
    page.open("/settings/keys")
    page.fill("name", "n" * 100)
    page.click("Create key")
    page.click(f"Revoke {'n' * 100}")
    check("keys")
    for path in (
        "/settings/webhooks",
        "/settings/posts",
        "/settings/posts/1",
        "/settings/posts/2/edit",
        "/settings/posts?status=x",
    ):
        page.open(path)
        check(path)


# Others


def test_a_link_does_not_work_a_second_time(page):
    link = page.service.blogapi("settings").stdout.strip()
    page.browser.get(f"data:text/html,<a href={link}>in a mail</a>")  # The cookie is strict, and there all the same.
    with page.next_page():
        page.browser.find_element(By.TAG_NAME, "a").click()
    page.click("Open")
    assert (page.browser.current_url, "Create a key" in page.text) == (f"{page.url}/settings/keys", True)
    page.browser.delete_all_cookies()
    page.browser.get(link)
    assert "No such link" in page.text
    page.open()
    assert NO_SESSION in page.text


def test_an_old_session_is_none(owner):
    with closing(sqlite3.connect(owner.service.database, isolation_level=None)) as connection:
        connection.execute("UPDATE session SET ends_at = '2026-01-01T00:00:00Z'")
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
    assert "Create a key" in owner.text


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
