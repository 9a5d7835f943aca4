"""Changes of a large post, many at once: memory stays bounded."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from http.client import HTTPException

import pytest

pytestmark = pytest.mark.slow

MEGABYTES = 250
CYRILLIC = json.dumps({"title": "A", "content": "ж" * 1_000_000}, ensure_ascii=False).encode()


def test_many_changes_of_a_large_post_keep_no_copy_of_it_each(service):
    service.request("POST", "/v1/posts", CYRILLIC, Content_Type="application/json")
    done, memory = threading.Event(), []

    def change(title):
        with suppress(HTTPException, ConnectionError):  # The oldest unread answers end.
            return service.request("PATCH", "/v1/posts/1", {"title": title})[0]

    def sample():
        while not done.wait(0.01):
            memory.append(service.memory)

    with ThreadPoolExecutor(96) as pool:
        pool.submit(sample)
        changes = [pool.submit(change, str(number)) for number in range(95)]
        wait(changes)
        done.set()
    assert {change.result() for change in changes} <= {200, 503, None}
    assert max(memory) < MEGABYTES
