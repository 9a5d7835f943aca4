"""The page of the API reference, in a browser and without one."""

import gzip

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support import expected_conditions as expected
from selenium.webdriver.support.wait import WebDriverWait

from tests.cases import cases

PAGE = ("/docs", "/docs/docs.css", "/docs/docs.js", "/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js")


@pytest.mark.sqlite
@pytest.mark.slow
def test_a_post_is_created_from_the_page_on_a_phone_and_nothing_scrolls_sideways(browser, blog_in_browser):
    service, url = blog_in_browser
    wait = WebDriverWait(browser, 20, 0.1)

    def click(selector):
        wait.until(expected.element_to_be_clickable((By.CSS_SELECTOR, selector))).click()

    browser.resize(400, 900)
    browser.get(f"{url}/")
    click("button.authorize")
    wait.until(expected.element_to_be_clickable((By.CSS_SELECTOR, ".auth-container input"))).send_keys(service.key)
    click(".auth-btn-wrapper button.authorize")
    click(".auth-btn-wrapper button.btn-done")
    for operation in ("posts-list_posts", "posts-put_post", "webhooks-redeliver", "posts-create_post"):
        click(f"#operations-{operation} .opblock-summary-control")
        click(f"#operations-{operation} .try-out__btn")
    click("#operations-posts-create_post .execute")
    status = (By.CSS_SELECTOR, "#operations-posts-create_post .live-responses-table .response .response-col_status")
    wait.until(expected.text_to_be_present_in_element(status, "201"))
    assert browser.current_url == f"{url}/docs#/posts/create_post"
    (created,) = service.request("GET", "/v1/posts")[2]
    assert (created["title"], created["status"]) == ("Three days at the lake", "draft")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".opblock.is-open .responses-table")) == 5  # One has an answer.
    page = "return document.documentElement"
    assert browser.execute_script(f"{page}.scrollWidth") == browser.execute_script(f"{page}.clientWidth") <= 400
    browser.get(f"{url}/")
    click(".btn.authorize.locked")  # The page has remembered the key.
    assert [entry["message"] for entry in browser.get_log("browser") if entry["level"] != "DEBUG"] == []
    click(".auth-btn-wrapper button.btn-done")
    click("#owner")
    wait.until(expected.element_to_be_clickable((By.XPATH, "//a[@href='/docs'][.='API reference']")))


def test_the_page_cannot_load_anything_from_elsewhere_or_other_files_of_the_package(stranger, client):
    for path in PAGE:
        answer = stranger.get(path)
        assert answer.status_code == 200
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
        assert "http" not in answer.headers["Content-Security-Policy"]
        answer.close()
    assert stranger.get("/docs/swagger-ui.js").status_code == 401
    assert client.get("/docs/..%2fviews/guard.py").status_code == 404


@cases(
    ("accept", "status"), [("text/html,application/xhtml+xml,*/*;q=0.8", 302), ("*/*", 200), ("application/json", 200)]
)
def test_the_root_redirects_browsers_to_the_page_and_lists_the_addresses_for_others(stranger, accept, status):
    answer = stranger.get("/", headers={"Accept": accept})
    assert answer.status_code == status
    assert answer.headers["Vary"] == "Accept"
    if status == 302:
        assert answer.headers["Location"] == "/docs"
    else:
        assert answer.json.keys() > {"posts", "images", "micropub"}
        for address in answer.json.values():
            with stranger.get(address) as found:
                assert found.status_code == (401 if address.startswith("/v1") else 200)


@cases("path", PAGE)
def test_the_page_is_compressed_for_clients_that_accept_that(stranger, path):
    plain = stranger.get(path, headers={"Accept-Encoding": "gzip;q=0, identity"})
    compressed = stranger.get(path, headers={"Accept-Encoding": "gzip, br"})
    assert plain.headers.get("Content-Encoding") is None
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(compressed.data) == plain.data
    assert plain.headers["Vary"] == compressed.headers["Vary"] == "Accept-Encoding"
    assert plain.headers["Content-Type"] == compressed.headers["Content-Type"]
    assert plain.headers["ETag"] != compressed.headers["ETag"]
    again = stranger.get(path, headers={"Accept-Encoding": "gzip", "If-None-Match": compressed.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
