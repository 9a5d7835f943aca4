"""Changes of large posts, many at once: memory stays bounded, and small changes do not wait for all of them."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

pytestmark = pytest.mark.slow

MEGABYTES = 250
CYRILLIC = json.dumps({"title": "A", "content": "ж" * 1_000_000}, ensure_ascii=False).encode()


def most_memory_during(service, requests):
    """Send all requests at once; return their statuses, and the most memory that the server had, in MB."""
    done = threading.Event()
    samples = []

    def sample():
        while not done.wait(0.01):
            samples.append(service.memory)

    sampler = threading.Thread(target=sample)
    sampler.start()
    with ThreadPoolExecutor(len(requests)) as pool:
        statuses = [answer[0] for answer in pool.map(lambda request: service.request(*request), requests)]
    done.set()
    sampler.join()
    return set(statuses), max(samples)


@pytest.fixture
def large(service):
    """Create large posts; return their paths."""

    def create(count):
        headers = {"Content-Type": "application/json"}
        ids = [service.request("POST", "/v1/posts", CYRILLIC, **headers)[2]["id"] for _ in range(count)]
        return [f"/v1/posts/{post_id}" for post_id in ids]

    return create


def test_many_changes_of_a_large_post_keep_no_copy_of_it_each(service, large):
    (path,) = large(1)
    statuses, memory = most_memory_during(service, [("PATCH", path, {"title": f"{n}"}) for n in range(95)])
    assert statuses <= {200, 503}
    assert memory < MEGABYTES
