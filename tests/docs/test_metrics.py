"""The metrics for Prometheus."""

from importlib.metadata import version

import pytest
from prometheus_client.parser import text_string_to_metric_families

from blogapi.api.service import BUCKETS
from blogapi.storage.models import Backup
from blogapi.wings.docs.metrics import Metrics, label
from tests.api.fixtures import with_key
from tests.cases import cases


def samples(text, name):
    """The values of a metric, by its labels if it has any."""
    families = text_string_to_metric_families(text)
    found = [each for family in families for each in family.samples if each.name == name]
    return {" ".join(sample.labels.values()): sample.value for sample in found}


def test_durations_are_counted_up_to_each_bound(app):
    service = app.extensions["blogapi"]
    for status, seconds in [("200", 0.001), ("200", 0.0011), ("404", 0.3), ("500", 30.0)]:
        service.requests.count("posts", status, seconds)
    text = Metrics(service).text().decode()
    buckets = samples(text, "blogapi_request_duration_seconds_bucket")
    assert list(buckets.values()) == [1, *[2] * 7, *[3] * 3, 4]
    assert list(buckets) == [f"{bound} posts" for bound in [*BUCKETS, "+Inf"]]
    assert samples(text, "blogapi_request_duration_seconds_count") == {"posts": 4}
    assert samples(text, "blogapi_request_duration_seconds_sum") == {"posts": pytest.approx(30.3021)}


def test_every_view_has_its_own_label(app):
    labels = [label(each) for each in app.view_functions]
    assert sorted(labels) == sorted(set(labels))
    assert {"create_post", "owner.create_post"} <= set(labels)


@pytest.mark.both_engines
def test_deliveries_are_counted_by_state(client, post, webhook, send, receiver):
    def deliveries():
        return samples(client.get("/metrics").text, "blogapi_deliveries")

    assert deliveries() == {"pending": 0, "delivered": 0, "failed": 0}
    for _ in range(2):
        webhook()
    post()
    assert deliveries() == {"pending": 2, "delivered": 0, "failed": 0}
    send()
    assert deliveries() == {"pending": 0, "delivered": 2, "failed": 0}
    receiver.status = 410
    post()
    send()
    assert deliveries() == {"pending": 0, "delivered": 2, "failed": 2}


def test_the_limit_and_the_size_of_the_database_are_included(client, config):
    text = client.get("/metrics").text
    size = sum(path.stat().st_size for path in (config.database, config.database.with_name("blog.db-wal")))
    assert samples(text, "blogapi_rate_limit") == {"": config.rate_limit}
    assert samples(text, "blogapi_database_size_bytes") == {"": size}
    assert samples(text, "blogapi_wal_bytes") == {"": config.database.with_name("blog.db-wal").stat().st_size}
    assert samples(text, "blogapi_disk_free_bytes")[""] > 1e6


@pytest.mark.both_engines
def test_the_version_the_progress_of_the_index_and_the_last_backup_are_included(client, database, post, clock):
    text = client.get("/metrics").text
    assert samples(text, "blogapi_build_info") == {version("blogapi"): 1}
    assert samples(text, "blogapi_indexed_ratio") == {"": 1}
    assert samples(text, "blogapi_last_backup_timestamp_seconds") == {}
    for _ in range(2):
        clock.now += 60
        backup = Backup.insert(id=1, made_at=database.now)
        database.write(lambda tx, backup=backup: [tx.execute(query) for query in (Backup.delete(), backup)])
        text = client.get("/metrics").text
        assert samples(text, "blogapi_last_backup_timestamp_seconds") == {"": clock.now}


@cases(("scope", "status"), [("read-only", 200), ("drafts-only", 200), ("published-only", 403)])
def test_a_key_that_may_read_drafts_may_read_the_metrics(app, scope, status):
    client = with_key(app, scope)
    assert client.get("/metrics").status_code == status
    assert client.post("/metrics").status_code in (403, 405)


def test_a_scrape_is_a_request_like_any_other_and_requests_are_counted_by_route_not_by_path(serve):
    service = serve(BLOGAPI_RATE_LIMIT=7)
    service.key, key = None, service.key
    assert service.request("GET", "/metrics")[0] == 401
    assert service.raw(b"GET /v1/posts\r\n\r\n")[0] == 400
    service.key = key
    for path in ("posts?limit=1", "posts/1", "posts/2", "posts/by-slug/a", "x", "y"):
        service.request("GET", f"/v1/{path}")
    counted = {"metrics 401": 1, "none 400": 1, "list_posts 200": 1, "none 404": 2}
    with service.connect() as sock:
        sock.sendall(service.head("GET /metrics HTTP/1.1", "Connection: close"))
        head, _, text = sock.makefile("rb").read().decode().partition("\r\n\r\n")
    assert "Content-Type: text/plain; version=1.0.0; charset=utf-8" in head.split("\r\n")
    counts = samples(text, "blogapi_requests_total")
    assert counts.pop("healthz 200") >= 1  # from waiting for the server to start
    assert counts == counted | {"get_post 404": 2, "get_post_by_slug 404": 1}
    assert service.request("GET", "/metrics")[0] == 429
