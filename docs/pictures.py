"""Take the pictures of the owner's page: `.venv/bin/python docs/pictures.py [FOLDER]`. It needs Chromium."""

import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service as ChromeService
from selenium.webdriver.common.by import By
from werkzeug.serving import WSGIRequestHandler, make_server

from blogapi import create_app
from blogapi.config import Config
from blogapi.storage import keys
from blogapi.wings.owner import sessions

FOLDER = Path(__file__).parent / "pictures"
NOON = 1_795_176_000  # 2026-11-20T12:00:00Z
CONTENT = """**Friday.** Fog, and somewhere in it a lake.

We found it on the second day, by walking downhill until our shoes were wet. There was a boat,
and nobody who minded.

## What to bring

* a thermos, larger than you think
* dry socks
* [the old map](https://example.org/map), which is right about the ferry
"""
POSTS = (
    ("Hello", "draft", -30, []),
    ("Bread, again", "published", -21, ["Kitchen"]),
    ("Notes on a slow week", "archived", -14, []),
    ("A bicycle for the hills", "published", -9, ["Travel", "Bicycles"]),
    ("Café & Käse", "draft", -3, ["Kitchen", "Travel"]),
    ("Where the ferry goes in winter", "scheduled", -1, ["Travel"]),
    ("Three days at the lake", "published", 0, ["Travel", "Lake Constance"]),
)
PICTURES = (  # name, path, width, theme, buttons to press
    ("posts", "/settings/posts", 960, "light", ()),
    ("write", "/settings/posts/7/edit", 1280, "light", ("Preview",)),
    ("history", "/settings/posts/7/history/2", 960, "light", ()),
    ("keys", "/settings/keys", 960, "light", ()),
    ("phone", "/settings/posts/7", 400, "dark", ("Unpublish", "Return to draft")),
)


class Quiet(WSGIRequestHandler):
    """Logs no requests."""

    def log_request(self, *arguments: object) -> None:
        pass


def seed(app, database, clock: list[float]) -> None:
    """Fill a database with the posts."""
    key = keys.new_key()
    database.write(keys.add, "laptop", key, "full")
    database.write(keys.add, "site", keys.new_key(), "published-only")
    client = app.test_client()
    headers = {"Authorization": f"Bearer {key}"}
    for title, status, days, tags in POSTS:
        clock[0] = NOON + days * 86_400
        post = {"title": title, "content": CONTENT, "tags": tags}
        address = client.post("/v1/posts", json=post, headers=headers).headers["Location"]
        change = {"status": status} | ({"published_at": "2026-12-01T07:30:00Z"} if status == "scheduled" else {})
        client.patch(address, json=change, headers=headers)
    words = {"content": CONTENT.replace("a thermos, larger than you think", "two thermoses"), "tags": ["Travel"]}
    client.patch(address, json=words, headers=headers)


def open_browser() -> webdriver.Chrome:
    """Start a headless Chromium."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("headless", "no-sandbox", "disable-gpu", "no-first-run", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    return webdriver.Chrome(options, ChromeService(shutil.which("chromedriver")))


def take(address: str, link: str, folder: Path) -> None:
    """Take all pictures."""
    browser = open_browser()
    try:
        browser.get(f"{address}/settings/open?link={link}")
        browser.find_element(By.CSS_SELECTOR, "main button").click()
        for name, path, width, theme, labels in PICTURES:
            media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
            size = {"width": width, "height": 640, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            browser.get(f"{address}{path}")
            for label in labels:
                buttons = browser.find_elements(By.CSS_SELECTOR, "main button, main summary")
                [each for each in buttons if each.text.startswith(label)][-1].click()
            if name == "write":
                browser.implicitly_wait(10)
                browser.find_element(By.CSS_SELECTOR, ".shown h2")
            browser.save_screenshot(str(folder / f"{name}.png"))
    finally:
        browser.quit()


def main(pictures: Path = FOLDER) -> None:
    """Serve a seeded database in this thread, and take pictures from another."""
    clock = [float(NOON)]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as browser:
        app = create_app(Config(database=Path(folder) / "blog.db"), lambda: clock[0])
        database = app.extensions["blogapi"].database
        seed(app, database, clock)
        server = make_server("127.0.0.1", 0, app, request_handler=Quiet)
        server.timeout = 0.1
        taken = browser.submit(
            take, f"http://127.0.0.1:{server.port}", database.write(sessions.add, sessions.LINK), pictures
        )
        while not taken.done():
            server.handle_request()
        server.server_close()
        database.close()
        taken.result()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
