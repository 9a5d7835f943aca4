"""The browsers that tests use: Chromium and, where the two differ, also Firefox.

Each test has a host of its own for the blog, so it has no cookies and no storage yet. All share a tab and the service.
"""

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing
from itertools import count
from typing import NamedTuple
from zlib import crc32

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service as ChromeService
from selenium.webdriver.firefox.service import Service as FirefoxService

from tests.service import Server

SHELL = "/usr/lib/chromium/chromium-headless-shell"  # Debian's command would leave it behind when it ends.
COMPOSE = """
const processor = Cc["@mozilla.org/text-input-processor;1"].createInstance(Ci.nsITextInputProcessor);
processor.beginInputTransactionForTests(window, () => true);
processor.setPendingCompositionString(arguments[0]);
processor.appendClauseToPendingComposition(arguments[0].length, processor.ATTR_RAW_CLAUSE);
processor.setCaretInPendingComposition(arguments[0].length);
processor.flushPendingComposition();
window.processor = processor;
"""
PROBLEMS = """
const found = Services.console.getMessageArray().filter((each) => each instanceof Ci.nsIScriptError);
Services.console.reset();
return found.filter((each) => /^http/.test(each.sourceName)).map((each) => each.errorMessage);
"""


def program(*names):
    """Return the path of the first of these programs that is installed. If there is none, skip the test."""
    found = next(filter(None, map(shutil.which, names)), None)
    if not found:
        pytest.skip(f"{names[-1]} is not there; .ci/run installs it")
    return found


def driver(service, name):
    """Return a driver that creates profiles in the folder of the tests, which may be in memory."""
    return service(program(name), env=os.environ | {"TMPDIR": tempfile.gettempdir()})


class Chromium(webdriver.Chrome):
    @classmethod
    def start(cls, profile=""):
        """Start a headless Chromium. Without a profile, it is the shell, which takes a third less processor time."""
        options = webdriver.ChromeOptions()
        options.binary_location = program("chromium") if profile else program(SHELL, "chromium")
        quiet = "disable-background-networking", "disable-component-update", "disable-quic", "disable-sync"
        # One process for all pages: a new one for each site, and another in advance, would take longer than a page.
        quiet += "disable-site-isolation-trials", "renderer-process-limit=1"
        quiet += ("disable-features=SpareRendererForSitePerProcess",)
        for argument in ("headless", "no-sandbox", "disable-gpu", "no-first-run", *quiet):
            options.add_argument(f"--{argument}")
        if profile:
            options.add_argument(f"--user-data-dir={profile}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        return cls(options, driver(ChromeService, "chromedriver"))

    @property
    def process(self):
        """The id of the browser's process, found through the lock file of its profile."""
        lock = os.path.join(self.capabilities["chrome"]["userDataDir"], "SingletonLock")
        return int(os.readlink(lock).rpartition("-")[2])

    def offline(self, is_offline=True, latency=0):
        """Cut the network off, or slow it down by some milliseconds."""
        self.execute_cdp_cmd("Network.enable", {})
        conditions = {"offline": is_offline, "latency": latency, "downloadThroughput": -1, "uploadThroughput": -1}
        self.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)

    def give(self, url, cookie):
        self.execute_cdp_cmd("Network.setCookie", cookie | {"url": url})

    def run_scripts(self, is_on):
        self.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not is_on})

    def resize(self, width, height):
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def show(self, theme="light", medium=""):
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features, "media": medium})

    def move_to(self, zone):
        self.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": zone})

    def compose(self, text):
        """Begin to write a word as an input method does."""
        composition = {"text": text, "selectionStart": len(text), "selectionEnd": len(text)}
        self.execute_cdp_cmd("Input.imeSetComposition", composition)

    def end_composition(self, text):
        self.execute_cdp_cmd("Input.insertText", {"text": text})

    def problems(self):
        """Return what the console has logged since the last call."""
        return [entry["message"] for entry in self.get_log("browser")]

    def bypass_policies(self):
        """Open a tab that runs scripts in pages that forbid them."""
        self.switch_to.new_window("tab")
        self.execute_cdp_cmd("Page.setBypassCSP", {"enabled": True})


class Firefox(webdriver.Firefox):
    @classmethod
    def start(cls, profile=""):
        """Start a headless Firefox, which takes five seconds."""
        options = webdriver.FirefoxOptions()
        options.binary_location = program("firefox-esr", "firefox")
        for argument in ("-headless", "-remote-allow-system-access", *(["-profile", profile] if profile else [])):
            options.add_argument(argument)
        return cls(options, driver(FirefoxService, "geckodriver"))

    def chrome(self, script, *arguments):
        """Run a script with the rights of the browser's own window."""
        with self.context(self.CONTEXT_CHROME):
            start = "const context = gBrowser.selectedBrowser.browsingContext; "
            return self.execute_script(start + script, *arguments)

    def offline(self, is_offline=True):
        self.chrome("context.forceOffline = arguments[0]", is_offline)

    def give(self, url, cookie):
        self.get(f"{url}/settings/owner.css")  # It accepts a cookie only for the page that it shows.
        self.add_cookie(cookie)

    def run_scripts(self, is_on):
        self.chrome("Services.prefs.setBoolPref('javascript.enabled', arguments[0])", is_on)

    def resize(self, width, height):
        self.set_window_size(width, height)  # Its windows are at least 500 pixels wide.

    def move_to(self, zone):
        self.chrome("context.timezoneOverride = arguments[0]", zone)

    def compose(self, text):
        self.chrome(COMPOSE, text)

    def end_composition(self, text):
        self.chrome("window.processor.commitCompositionWith(arguments[0])", text)

    def problems(self):
        return self.chrome(PROBLEMS)


def pytest_itemcollected(item):
    """Let two workers use Chromium, and one Firefox, which few tests need: starting a browser takes seconds."""
    if "browser" in item.fixturenames and not item.get_closest_marker("xdist_group"):
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        name = parameters.get("browser", "chromium")
        group = f"{name} {crc32(item.nodeid.encode()) % 2}" if name == "chromium" else name
        item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def chromium():
    browser = Chromium.start()
    yield browser
    browser.quit()


@pytest.fixture(scope="session")
def firefox():
    browser = Firefox.start()
    yield browser
    browser.quit()


@pytest.fixture
def browser(request):
    """A browser, Chromium by default, with one tab, which tests share, because a new one takes as long as a page."""
    browser = request.getfixturevalue(getattr(request, "param", "chromium"))
    tab = vars(browser).setdefault("tab", browser.window_handles[0])
    for handle in {*browser.window_handles} - {tab}:
        browser.switch_to.window(handle)
        browser.close()
    browser.switch_to.window(tab)
    browser.get("about:blank")
    browser.move_to("")
    browser.resize(1280, 900)  # wide enough to show the settings beside a text
    browser.problems()  # discards those of other tests
    yield browser
    browser.run_scripts(True)
    browser.offline(False)


class Blog(NamedTuple):
    """A running service, and the address at which a browser sees it."""

    service: Server
    url: str


@pytest.fixture(scope="session")
def shared_blog(tmp_path_factory):
    """A service for all tests with a browser, its empty database, and the numbers of the tests."""
    path = tmp_path_factory.mktemp("shared") / "blog.db"
    with (
        Server(path, BLOGAPI_WEBHOOK_PRIVATE="true") as service,
        closing(sqlite3.connect(path)) as database,
        closing(sqlite3.connect(":memory:")) as empty,
    ):
        database.backup(empty)
        yield service, empty, count()


@pytest.fixture
def blog_in_browser(shared_blog):
    """A blog without posts, on a host of the test's own, for which the browser has no cookies and no storage yet."""
    service, empty, numbers = shared_blog
    with closing(sqlite3.connect(service.database)) as database:
        empty.backup(database, sleep=0.02)
    return Blog(service, f"http://test{next(numbers)}.localhost:{service.port}")
