"""Fixtures for the tests of the owner's page."""

import pytest

from tests.owner.pages import enter


@pytest.fixture
def owner(app, database):
    """A client with a session."""
    return enter(app, database)
