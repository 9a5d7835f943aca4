"""DELETE /posts/{id}."""

from itertools import product

from blogapi.storage.models import Post, PostTag


def test_a_deletion_is_204_and_removes_the_post_and_its_tags(client, post, count):
    post(tags=["a", "b"])
    answer = client.delete("/v1/posts/1")
    assert (answer.status_code, answer.data) == (204, b"")
    assert "Content-Type" not in answer.headers
    assert (count(Post), count(PostTag)) == (0, 0)


def test_in_any_order_of_deletions_slugs_become_free_and_ids_do_not(client, post):
    for order in ("321", "456"):
        for _ in range(3):
            post()
        for number in order:
            assert client.delete(f"/v1/posts/{number}").status_code == 204
    assert post().items() >= {"id": "7", "slug": "a-title"}.items()


def test_only_the_id_as_written_names_a_post(client, post):
    before = post()
    spellings = ["2", "007", "01", "+1", "-1", "1.0", "%D9%A1", "1%20", "%201", "1%0A", "1_0", "0x1", "1e0", "1/", "a"]
    for spelling, method in product((*spellings, "", "9" * 19, "9" * 30), ("GET", "PATCH", "DELETE")):
        answer = client.open(f"/v1/posts/{spelling}", method=method, json={"title": "B"})
        assert answer.status_code == 404, (method, spelling)
    assert client.get("/v1/posts").json == [before]


def test_a_query_is_refused_and_nothing_deleted(client, post, count):
    post()
    for query in ("force=1", "status=draft", "=", "a"):
        assert client.delete(f"/v1/posts/1?{query}").status_code == 400
    assert count(Post) == 1
