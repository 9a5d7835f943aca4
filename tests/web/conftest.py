"""Fixtures for the tests of lists."""

import pytest

LATER = "2026-11-20T13:00:00Z"


@pytest.fixture
def change(client):
    """Change a post."""

    def change(number, **fields):
        answer = client.patch(f"/v1/posts/{number}", json=fields)
        assert answer.status_code == 200, answer.text

    return change


@pytest.fixture
def dated(post, change):
    """Posts of each status with a time and without, some of the same second; every other has a tag."""
    for title, status, year in [
        ("1", "published", 2024),
        ("2", "draft", None),
        ("3", "published", 2020),
        ("4", "draft", 2022),
        ("5", "published", 2024),
        ("6", "published", 2020),
        ("7", "published", 2020),
        ("8", "published", 2020),
        ("9", "published", 2021),
    ]:
        time = {"published_at": f"{year}-01-01T00:00:00Z"} if year else {}
        post(title=title, status=status, tags=["T"] if int(title) % 2 else [], **time)
    change(8, status="archived")
    change(2, status="scheduled", published_at=LATER)
