"""An agent that may propose changes."""

import pytest

from tests.api.fixtures import with_key


@pytest.fixture
def agent(app):
    """A client with a drafts-only key."""
    return with_key(app, "drafts-only")
