"""The owner's page in a real browser, as people see and use it."""

from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from blogapi.storage.database import Database
from blogapi.wings.owner import sessions

SCRIPTS = Path(__file__).with_name("scripts.js").read_text()
# The rules of axe whose results depend on the width and the colors
OF_LOOKS = {"runOnly": ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]}
EDIT, NEW = "/settings/posts/1/edit", "/settings/posts/new"
LOOKS = ((390, "light"), (1280, "dark"))
MORE_LOOKS = ((390, "dark"), (1280, "light"))  # in `make soak`
SLOW = {"is_offline": False, "latency": 500}
# What browsers do differently, such as undo, input methods and dates, is tested in Firefox, too.
IN_BOTH_BROWSERS = pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)


class Window:
    """A browser window with a service's owner's page."""

    def __init__(self, browser, service, url, looks=LOOKS):
        self.browser = browser
        self.service = service
        self.url = url
        self.looks = looks

    def open(self, path="/settings"):
        is_again = self.browser.current_url == self.url + path  # The browser may still show the old page after `get`.
        with self.next_page() if is_again else nullcontext():
            self.browser.get(self.url + path)

    def link(self):
        """A new link that opens a session."""
        return f"{self.url}/settings/open?link={self.service.write(Database.write, sessions.add, sessions.LINK)}"

    def enter(self):
        """Begin a session without following its link and pressing the button there."""
        name = self.browser.execute_script("return navigator.userAgent")
        token = self.service.write(Database.write, sessions.add, sessions.SESSION, 0, name)
        cookie = {"name": "blogapi", "value": token, "path": "/settings", "httpOnly": True, "sameSite": "Strict"}
        self.browser.give(self.url, cookie)

    def run(self, function, *arguments):
        """Call a function of scripts.js in the page."""
        return self.browser.execute_script(f"{SCRIPTS}\nreturn {function}(...arguments)", *arguments)

    def click(self, label):
        """Click the first button (or the control that asks for confirmation) with this name for screen readers."""
        buttons = self.run("withText", label)
        button = next(each for each in buttons if each.accessible_name.strip() == label)
        leaves = self.run("centerAndTellIfItLeaves", button)
        with self.next_page() if leaves else nullcontext():
            button.click()

    @property
    def notice(self):
        """The page's notice about the last action."""
        return self.browser.find_element(By.CSS_SELECTOR, ".notice").text

    @contextmanager
    def next_page(self):
        """Wait for the page that the block opens."""
        self.browser.execute_script("document.documentElement.dataset.old = true")
        yield
        is_new = "return document.readyState === 'complete' && !document.documentElement.dataset.old"
        self.wait(lambda browser: browser.execute_script(is_new), 20)

    def wait(self, condition, seconds):
        """Wait until a condition holds. Ignore the errors that chromedriver raises while the page changes."""
        WebDriverWait(self.browser, seconds, 0.06, [WebDriverException]).until(condition)

    def fill(self, **typed):
        """Type into the fields with these names, and text at the end of the content."""
        for name, text in typed.items():
            if name == "content" and isinstance(text, str):
                self.run("select", -1)
            self.browser.find_element(By.NAME, name).send_keys(text)

    def value(self, name):
        return self.browser.find_element(By.ID, name).get_property("value")

    def has(self, content):
        """Wait until the form has this content."""
        script = "return document.readyState === 'complete' && document.querySelector('#content')?.value"
        self.wait(lambda browser: browser.execute_script(script) == content, 60)

    def said(self, text):
        """Wait until the bar of a post's form says this."""
        script = "return document.querySelector('.bar')?.innerText ?? ''"
        self.wait(lambda browser: text in (browser.execute_script(script) or ""), 60)  # None while a page loads

    def update(self):
        self.click("Update")
        self.said("Updated for readers")

    def save(self):
        self.click("Save draft")
        self.said("Saved")

    def undo(self, command="undo"):
        self.browser.execute_script(f"document.execCommand('{command}')")

    def send(self, answered="Kept"):
        """Send what is typed at once, as if the tab were hidden, instead of after two seconds; wait for the outcome."""
        self.browser.execute_script("dispatchEvent(new Event('pagehide'))")
        self.said(answered)

    def stored(self, number=1):
        """The content of a post."""
        return self.service.request("GET", f"/v1/posts/{number}")[2]["content"]

    @property
    def titles(self):
        return [post["title"] for post in self.service.request("GET", "/v1/posts")[2]]

    @contextmanager
    def another_tab(self):
        """Another tab, which loads a page of its own."""
        first = self.browser.current_window_handle
        self.browser.switch_to.new_window("tab")
        yield
        self.browser.switch_to.window(first)

    @contextmanager
    def another_device(self):
        """Another device, with its own session and storage: for a browser, this is another site."""
        with self.another_tab():
            mine, self.url = self.url, self.url.replace("//", "//other-")
            self.enter()
            yield
            self.url = mine

    def come_back(self):
        """Do what a tab does when it is shown again, because a headless tab is always visible."""
        self.browser.execute_script("dispatchEvent(new Event('visibilitychange'))")

    @property
    def text(self):
        return self.browser.find_element(By.TAG_NAME, "main").text

    @property
    def shown(self):
        """The texts that are shown only once, in order."""
        return [each.text for each in self.browser.find_elements(By.CSS_SELECTOR, ".new code")]

    def press(self, *keys):
        ActionChains(self.browser).send_keys(*keys).perform()

    def reach(self, name):
        """Press the tab key until the element with this name has the focus. The focus must be visible."""
        for _ in range(40):
            self.press(Keys.TAB)
            focused = self.browser.switch_to.active_element
            if focused.accessible_name.strip() == name:
                is_text = focused.get_attribute("id") in ("title", "content")  # where the caret is enough
                assert is_text or focused.value_of_css_property("outline-style") == "solid"
                return
        raise AssertionError(f"{name} is not reached in:\n{self.text}")

    def follow(self, name):
        """Reach a link or a button, and press Enter for the next page."""
        self.reach(name)
        with self.next_page():
            self.press(Keys.ENTER)

    def check_each(self, axe, *paths):
        for path in paths:
            self.open(path)
            self.check(axe)

    def check(self, axe):
        """Check that the page is accessible and nothing scrolls sideways, in each width and theme."""
        rules = {}  # all
        for width, theme in self.looks:
            self.browser.show(theme)
            self.browser.resize(width, 4000)  # The bar of a form covers nothing then.
            if not self.browser.execute_script("return 'axe' in window"):
                self.browser.execute_script(axe)
            where = self.browser.current_url, width, theme
            assert self.run("violations", rules) == [], where
            assert self.run("poorControls") == [], where
            assert self.browser.execute_script("return document.documentElement.scrollWidth") <= width, where
            rows = "const nav = document.querySelector('header nav'); return nav ? nav.offsetHeight : 0"
            assert self.browser.execute_script(rows) < 45, where
            rules = OF_LOOKS
