"""The application is a Flask application, so Flask extensions work with it."""

import gc
import weakref

import pytest
from flask import after_this_request, g, request_finished, request_started, request_tearing_down, session, url_for

from blogapi import create_app
from blogapi.api.access import for_strangers
from blogapi.config import Config
from tests.cases import cases


@pytest.fixture
def app(own_app):
    return own_app()


def test_hooks_run_before_and_after_requests(app, client):
    happened = []

    @app.before_request
    def before():
        g.started = True

    @app.after_request
    def after(response):
        happened.append(g.started)
        response.headers["X-After"] = "1"
        response.set_data(response.data + b" ")
        return response

    @app.teardown_request
    def teardown(error):
        happened.append(error)

    answer = client.get("/v1/posts")
    assert (answer.data, answer.headers["Content-Length"], answer.headers["X-After"]) == (b"[]\n ", "4", "1")
    assert happened == [True, None]


def test_a_hook_can_answer_a_request_and_one_that_is_added_too_late_is_refused(app, client):
    app.before_request(lambda: ("Elsewhere.", 503))
    answer = client.get("/v1/posts")
    assert (answer.status_code, answer.text) == (503, "Elsewhere.")
    with pytest.raises(AssertionError, match="can no longer be called"):
        app.before_request(lambda: None)


def test_an_added_view_can_return_text_and_run_a_function_afterwards(app, client):
    def shout(response):
        response.set_data(response.data.upper())
        return response

    @app.get("/greeting")
    def greet():
        after_this_request(shout)
        return f"hello from {url_for('greet')}"

    assert client.get("/greeting").text == "HELLO FROM /GREETING"


def test_a_hook_can_remove_view_arguments_in_each_request(app, client):
    app.url_value_preprocessor(lambda endpoint, values: g.setdefault("name", values.pop("name")))
    app.get("/greeting/<name>")(lambda: g.name)
    assert [client.get("/greeting/you").text, client.get("/greeting/you").text] == ["you", "you"]


@cases("signal", [request_started, request_finished, request_tearing_down])
def test_signals_are_sent(app, client, signal):
    senders = []
    with signal.connected_to(lambda background, **more: senders.append(background), app):
        client.get("/v1/posts")
    assert senders == [app]


def test_a_session_is_refused(app, client):
    app.testing = True

    @app.after_request
    def write(response):
        session["a"] = "b"
        return response

    with pytest.raises(RuntimeError, match="session is unavailable"):
        client.get("/v1/posts")


def test_a_response_has_each_header_once(app, client):
    names = [name.lower() for name, _ in client.get("/v1/posts").headers]
    assert len(names) == len(set(names)) == 7


def test_an_application_that_is_no_longer_used_is_freed(tmp_path):
    app = create_app(Config(database=tmp_path / "blog.db"))
    app.test_client().get("/healthz")
    app.extensions["blogapi"].database.close()
    reference = weakref.ref(app)
    del app
    gc.collect()
    assert reference() is None


def test_a_view_for_strangers_opens_nothing_but_itself(app):
    @app.get("/<path:rest>")
    @for_strangers
    def rest(rest):
        return rest

    stranger = app.test_client()
    assert (stranger.get("/elsewhere").status_code, stranger.post("/elsewhere").status_code) == (200, 405)
    for path, status in (("/v1/posts", 401), ("/metrics", 401), ("/settings/keys", 403)):
        assert (stranger.get(path).status_code, stranger.put(path).status_code) in ((status, status), (status, 405))
