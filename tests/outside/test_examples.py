"""The programs in docs/examples.md, exactly as written: against a running service, and in a browser."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from xml.etree import ElementTree

import pytest
from selenium.webdriver.common.by import By

from tests.outside.tools import served
from tests.pages import Page
from tests.service import BIN, CHECKOUT, Server, eventually, free_port

pytestmark = pytest.mark.slow

EXAMPLES = Page("docs/examples.md")
INSTALL, MAKE_KEY = EXAMPLES.take("Examples")
(BUILD,) = EXAMPLES.take("A static site", "python")
(RUN_BUILD,) = EXAMPLES.take("A static site")
(REBUILD,) = EXAMPLES.take("Built when something is published", "python")
SUBSCRIBE, RUN_REBUILD = EXAMPLES.take("Built when something is published")
(CHANGES,) = EXAMPLES.take("What has changed since the last time")
(SEARCH,) = EXAMPLES.take("A search box", "html")
MIRROR, RESTORE = EXAMPLES.take("A mirror in git")
(WORKFLOW,) = EXAMPLES.take("Automations", "json")
(SHORTCUT,) = EXAMPLES.take("A shortcut for iOS")
POSTS = [
    {"title": "Index", "content": "Not the list.", "published_at": "2026-01-04T00:00:00Z"},
    {"title": "Rye & spelt", "content": "*Patience.*", "tags": ["Bread"], "published_at": "2026-01-02T00:00:00Z"},
    {"title": "Crème brûlée", "content": "Sugar.", "tags": ["Sweets"], "published_at": "2026-01-03T00:00:00Z"},
    {"title": "Pretzels", "content": "Lye.", "tags": ["bread"], "published_at": "2026-01-01T00:00:00Z"},
]
DRAFT = {"title": "Crème caramel", "content": "Not yet.", "tags": ["Secret"]}


def shell(block, folder, environ):
    """Run a block in a shell, with the Python of the tests; return what it printed."""
    environ = environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    command = ["bash", "-euc", block.replace("site/bin/python", sys.executable)]
    return subprocess.check_output(command, cwd=folder, env=environ, text=True, timeout=60)


@pytest.fixture
def site(tmp_path):
    """Serve the folder of the site; yield its URL."""
    folder = tmp_path / "public"
    folder.mkdir()
    with served(folder) as address:
        yield folder, address


@pytest.fixture
def blog(tmp_path, site):
    """A service with published posts and a draft, and the environment for a site's programs."""
    settings = {"BLOGAPI_CORS_ORIGINS": site[1], "BLOGAPI_WEBHOOK_PRIVATE": "true"}
    with Server(tmp_path / "blog.db", **settings) as service:
        for post in POSTS:
            assert service.request("POST", "/v1/posts", post | {"status": "published"})[0] == 201
        assert service.request("POST", "/v1/posts", DRAFT)[0] == 201
        key = shell(MAKE_KEY + 'echo "$BLOG_KEY"', CHECKOUT, service.environ).strip()
        (tmp_path / "build.py").write_text(BUILD)
        (tmp_path / "rebuild.py").write_text(REBUILD)
        yield service, os.environ | {"BLOG_URL": f"http://127.0.0.1:{service.port}", "BLOG_KEY": key}


def test_every_block_is_run_and_its_libraries_are_installed():
    assert EXAMPLES.forgotten == []
    assert all(version(library) for library in INSTALL.split("pip install ")[1].split())


def test_a_site_has_each_published_post_and_loses_only_the_pages_of_those_that_are_gone(blog, site, tmp_path):
    (service, environ), (folder, _) = blog, site
    shell(RUN_BUILD, tmp_path, environ)
    pages = {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*.*") if file.is_file()}
    assert pages.keys() == {
        ".written.json", "feed.xml", "index.html", "posts/creme-brulee.html", "posts/index.html", "posts/pretzels.html",
        "posts/rye-spelt.html", "sitemap.xml", "tags.html",
    }  # fmt: skip
    assert "<h1>Rye &amp; spelt</h1>\n<p><em>Patience.</em></p>" in pages["posts/rye-spelt.html"]
    by_date = ["index", "creme-brulee", "rye-spelt", "pretzels"]
    assert re.findall(r"<a href=\"posts/(.*?)\.html\">", pages["index.html"]) == by_date
    tags = re.findall(r"<h2>(.*?)</h2>|<a href=\"posts/(.*?)\.html\">", pages["tags.html"])
    by_tag = ["bread (2)", "rye-spelt", "pretzels", "Sweets (1)", "creme-brulee"]
    assert [heading or link for heading, link in tags] == by_tag
    urls = [f"https://blog.example.org/posts/{slug}.html" for slug in by_date]
    feed, sitemap = ElementTree.fromstring(pages["feed.xml"]), ElementTree.fromstring(pages["sitemap.xml"])
    assert [entry.findtext("{*}id") for entry in feed.iterfind("{*}entry")] == urls
    assert feed.findtext("{*}entry[3]/{*}content") == "<p><em>Patience.</em></p>\n"
    assert [each.text for each in sitemap.iterfind("{*}url/{*}loc")] == ["https://blog.example.org/", *urls]

    for name in ("search.html", "style.css"):
        (folder / name).touch()
    before = {*folder.rglob("*.*")}
    service.request("DELETE", "/v1/posts/1")
    shell(RUN_BUILD, tmp_path, environ)
    assert before - {*folder.rglob("*.*")} == {folder / "posts/index.html"}


def test_a_webhook_rebuilds_the_site_when_something_on_it_changes(blog, site, tmp_path):
    (service, environ), (folder, _), port = blog, site, free_port()
    subscribe = SUBSCRIBE.replace(":8000", f":{service.port}").replace(":9000", f":{port}")
    webhook = json.loads(shell(subscribe, tmp_path, environ | {"KEY": service.key}))
    secret, _, *arguments = RUN_REBUILD.replace("whsec_…", webhook["secret"]).replace("9000", str(port)).split()
    environ |= dict([secret.split("=", 1)])
    command = [sys.executable, *arguments]
    program = subprocess.Popen(command, cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL)
    try:
        eventually((folder / "tags.html").exists)
        assert service.request("PATCH", "/v1/posts/5", {"status": "published"})[0] == 200
        eventually((folder / "posts/creme-caramel.html").exists)
        assert service.request("PATCH", "/v1/tags/secret", {"name": "Open"})[0] == 200
        eventually(lambda: "Open (1)" in (folder / "tags.html").read_text())
        assert service.request("DELETE", "/v1/posts/5")[0] == 204
        eventually(lambda: not (folder / "posts/creme-caramel.html").exists())
    finally:
        program.terminate()
        program.wait()


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not there")
def test_a_loop_reads_only_what_changed_and_what_was_deleted_since(blog, tmp_path):
    service, environ = blog
    loop = CHANGES.replace(".venv/bin/blogapi", f"{BIN}/blogapi").replace("8000", str(service.port))
    loop = loop.replace("updated_after=$since", "updated_after=$since&limit=2")
    environ = environ | service.environ
    slugs = ["creme-caramel", "pretzels", "creme-brulee", "rye-spelt", "index"]
    assert shell(loop, tmp_path, environ).split() == slugs
    (tmp_path / "since").write_text("2999-01-01")
    again = loop.replace("keys create", "keys regenerate").replace(" --read-only", "")
    assert shell(again, tmp_path, environ).split() == []
    (tmp_path / "since").write_text("2026-01-01")
    service.request("DELETE", "/v1/posts/2")
    assert shell(again, tmp_path, environ).split() == [slug for slug in slugs if slug != "rye-spelt"] + ["rye-spelt"]


def test_a_mirror_in_git_is_restored_to_a_new_service(blog, tmp_path):
    service, environ = blog
    who = dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "A") | {"HOME": str(tmp_path)}
    environ = environ | who | dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "a@example.org")
    mirror = MIRROR.replace("8000", str(service.port)).replace("blog_…", service.key)
    shell(mirror, tmp_path, environ)
    assert service.request("PATCH", "/v1/posts/2", {"content": "Ruined."})[0] == 200
    assert service.request("DELETE", "/v1/posts/3")[0] == 204
    for _ in range(2):
        shell("sh ~/mirror.sh", tmp_path, environ)
    log = shell("git -C ~/mirror log --oneline --stat", tmp_path, environ)
    assert (log.count("Posts of "), "creme-brulee.md" in log, ".blogapi.json" in log) == (2, True, False)
    with Server(tmp_path / "new.db") as new:
        shell(RESTORE.replace("8001", str(new.port)).replace("blog_…", new.key), tmp_path, environ)
        posts = {post["title"]: post for post in new.request("GET", "/v1/posts")[2]}
    for wanted in [*({"status": "published"} | post for post in POSTS), DRAFT]:
        assert posts[wanted["title"]].items() >= wanted.items()


def test_automations_send_what_the_service_accepts(blog):
    service, environ = blog
    sent = json.loads(WORKFLOW)["nodes"][0]["parameters"]
    path = sent["url"].removeprefix("=https://blog.example.org").replace("{{ $json.slug }}", "n8n")
    assert [service.request(sent["method"], path, {"title": "A", "content": "B"})[0] for _ in range(2)] == [201, 200]
    shortcut = SHORTCUT.replace("8000", str(service.port)).replace("blog_…", service.key)
    assert json.loads(shell(shortcut, CHECKOUT, environ))["title"] == "On the train"


def test_a_search_box_finds_published_posts_only(browser, blog, site):
    (service, environ), (folder, address) = blog, site
    page = SEARCH.replace("127.0.0.1:8000", f"127.0.0.1:{service.port}").replace("blog_…", environ["BLOG_KEY"])
    (folder / "search.html").write_text(page)
    browser.get(f"{address}/search.html")
    box, status, found = (browser.find_element(By.CSS_SELECTOR, name) for name in ("input", "p", "ul"))
    box.send_keys("CREME br")
    eventually(lambda: found.text == "Crème brûlée")
    assert [mark.text for mark in found.find_elements(By.CSS_SELECTOR, "mark")] == ["Crème", "brûlée"]
    box.send_keys(" xyz")
    eventually(lambda: status.text == "Nothing found for “CREME br xyz”.")
    assert found.text == ""
    box.clear()
    box.send_keys("***")
    eventually(lambda: status.text.startswith("q: "))
