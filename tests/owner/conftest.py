"""Fixtures for the tests of the owner's page."""

from pathlib import Path

import pytest

from tests.outside.tools import install, installing, require_node
from tests.owner.browser import Window
from tests.owner.pages import enter
from tests.service import CHECKOUT, Server

# What browsers do differently, such as undo, input methods and uploads, is tested in both.
WRITING = "test_browser_images", "test_browser_writing"
NOT_IN_FIREFOX = {
    # The page does not see functions and events that a test defines in Firefox.
    "test_a_cover_is_uploaded_and_the_same_file_again_after_a_failure",
    "test_an_image_is_chosen_pasted_and_dropped_where_the_cursor_is",
    "test_pasting_an_address_over_a_word_links_it",
    "test_what_is_pasted_from_a_document_becomes_markdown_which_one_undo_removes",
    # It scrolls the caret into view, not the end of the field.
    "test_the_bar_is_always_in_view_and_never_covers_the_caret",
}
FIREFOX = pytest.param("firefox", marks=pytest.mark.xdist_group("firefox"))  # It takes five seconds to start.


def pytest_generate_tests(metafunc):
    if "browser" in metafunc.fixturenames and metafunc.module.__name__.endswith(WRITING):
        is_in_both = metafunc.function.__name__ not in NOT_IN_FIREFOX
        metafunc.parametrize("browser", ["chromium", FIREFOX] if is_in_both else ["chromium"], indirect=True)


@pytest.fixture
def owner(app, database):
    """A client with a session."""
    return enter(app, database)


@pytest.fixture
def visitor(browser, tmp_path):
    """A window for somebody without a session."""
    with Server(tmp_path / "blog.db", BLOGAPI_WEBHOOK_PRIVATE="true") as service:
        yield Window(browser, service)


@pytest.fixture
def window(visitor):
    """A window for the owner, with a session."""
    visitor.enter()
    return visitor


@pytest.fixture
def evening(window):
    """A published post in the window's blog."""
    window.service.request("POST", "/v1/posts", {"title": "Evening", "content": "One.", "status": "published"})


@pytest.fixture(scope="session")
def axe():
    """The script of axe-core, which finds accessibility problems; it is installed once in .venv-axe."""
    require_node()
    target = CHECKOUT / ".venv-axe"
    with installing(target / "node_modules/.package-lock.json", Path(__file__)) as needed:
        if needed:
            options = ["--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0"]
            install("npm", "install", "--prefix", target, *options, "axe-core@4.14.1", cwd=CHECKOUT)
    return (target / "node_modules/axe-core/axe.min.js").read_text()
