"""Peewee's own queries, as its documentation shows them: the models use the database of the application."""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest

from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.storage.models import ApiKey, Post, PostTag

HELLO = {"title": "Hello", "content": "World", "status": "published", "tags": ["News"]}


@pytest.fixture
def post_id(database):
    return database.write(posts.add, HELLO, "first").id


def test_models_find_posts_that_the_service_stored(database, post_id):
    post = Post.get_by_id(post_id)
    assert (post.slug, post.status) == ("hello", "published")
    assert [tag.name for tag in PostTag.select().where(PostTag.post_id == post_id)] == ["News"]
    assert Post.select().where(Post.slug == "nothing").first() is None


def test_the_service_finds_posts_that_models_stored(database, client):
    ApiKey.update(name="renamed").execute()
    assert [key.name for key in ApiKey.select()] == ["renamed"]
    assert client.get("/v1/posts").status_code == 200


def test_a_peewee_transaction_is_atomic(database, post_id):
    with database.engine.peewee.atomic() as transaction:
        Post.update(slug="other").where(Post.id == post_id).execute()
        transaction.rollback()
    assert Post.get_by_id(post_id).slug == "hello"


@pytest.mark.sqlite
def test_threads_have_their_own_connections(database):
    """On a server with threads, requests read and write at the same time."""

    def work(number):
        outcomes = []
        for each in range(10):
            post = database.write(posts.add, HELLO | {"title": f"{number} {each}"}, "first")
            outcomes.append((post.id, post.document in lists.page(database, lists.ListQuery(100)).items))
        database.engine.close()  # this thread's connection
        return outcomes

    with ThreadPoolExecutor(4) as pool:
        assert sorted(chain.from_iterable(pool.map(work, range(4)))) == [(post_id, True) for post_id in range(1, 41)]
