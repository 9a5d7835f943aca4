"""Which client the server serves next, and which unfinished requests it ends first."""

import time

import gevent.socket
import pytest
from gevent.core import READ

from blogapi import create_app
from blogapi.api.service import EXTENSION
from blogapi.config import Config
from blogapi.server import fairness
from blogapi.server.connection import Stopped
from blogapi.server.fairness import MAX_CHANGES, SERVICE, Budget, Client, RoundRobinSemaphore, SharedState, Turns
from blogapi.server.handler import Handler
from blogapi.server.threads import EventLoop
from blogapi.storage import keys
from blogapi.storage.errors import Unavailable
from blogapi.wings.owner import sessions
from tests.service import add_key


class Connection:
    """A connection, as far as a budget is concerned."""

    def __init__(self, client="", is_accepted=False):
        self.client = client
        self.is_accepted = is_accepted
        self.reading = True
        self.ended = False

    def end(self):
        self.ended = True


@pytest.fixture
def handler(tmp_path):
    app = create_app(Config(database=tmp_path / "blog.db"), loop=EventLoop())
    handler = Handler(app, app.extensions[EXTENSION])
    yield handler
    handler.service.database.close()


def test_a_valid_key_is_known_until_it_is_revoked_whatever_it_requests(handler, key):
    request = "GET {} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer " + key + "\r\n\r\n"
    for target in ("/v1/posts", "/healthz", "/v1/nothing", "/docs"):
        send(handler, request.format(target))
        assert handler.shared.client(request.encode(), "") == Client(key, is_known=True)
    handler.service.database.write(keys.revoke, "a")
    send(handler, request.format("/v1/posts"))
    assert handler.shared.client(request.encode(), "192.0.2.1") == Client("192.0.2.1")


def test_a_session_is_known_until_it_ends(handler):
    database = handler.service.database
    token = database.write(sessions.add, sessions.SESSION)
    request = f"GET /settings/posts HTTP/1.1\r\nHost: a\r\nCookie: b=c; blogapi={token}\r\n\r\n"
    assert not handler.shared.client(request.encode(), "").is_known
    send(handler, request)
    assert handler.shared.client(request.encode(), "") == Client(token, is_known=True)
    database.write(sessions.end_all)
    send(handler, request)
    assert not handler.shared.client(request.encode(), "").is_known


def test_a_key_in_a_body_does_not_make_another_one_known(handler):
    body = f"h=entry&content=A&access_token={add_key(handler.service.database, 'a')}"
    other = f"blog_{'x' * 43}"
    head = f"POST /micropub HTTP/1.1\r\nHost: a\r\nX: {other}\r\nContent-Length: {len(body)}\r\n"
    send(handler, f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\n{body}", b"HTTP/1.1 201 ")
    assert not handler.shared.client(head.encode(), "").is_known


def send(handler, text, answer=b"HTTP/1.1 "):
    """Send a request on a new connection; return when it is answered."""
    ours, theirs = gevent.socket.socketpair()
    serving = gevent.spawn(handler, theirs, ("127.0.0.1", 1))
    with ours:
        ours.sendall(text.encode())
        assert ours.recv(100).startswith(answer)
    serving.join(20)
    theirs.close()


@pytest.fixture
def key(handler):
    """A key that the server knows."""
    key = add_key(handler.service.database, "a")
    send(handler, f"GET /v1/key HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n")
    return key


@pytest.fixture
def connect(handler):
    """Open connections to the handler; return each with the server's view of it."""
    opened = []

    def open_connection(data):
        ours, theirs = gevent.socket.socketpair()
        opened.extend((ours, theirs))
        gevent.spawn_raw(handler, theirs, ("127.0.0.1", 1))
        ours.sendall(data.encode())
        gevent.sleep(0.01)
        return ours, list(handler.connections)[-1]

    yield open_connection
    for sock in opened:
        sock.close()
    gevent.sleep(0.01)


HEALTH = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"


def test_an_idle_connection_is_kept_longer_than_it_is_promised_and_a_silent_new_one_is_not(connect):
    _, silent = connect("")
    assert 9 < silent.until - time.monotonic() <= 10
    ours, idle = connect(HEALTH)
    assert b"\r\nConnection: keep-alive\r\nKeep-Alive: timeout=70\r\n" in ours.recv(1000)
    assert 74 < idle.until - time.monotonic() <= 75
    ours.sendall(b"G")
    gevent.sleep(0.01)
    assert 9 < idle.until - time.monotonic() <= 10


@pytest.mark.parametrize("error", [TimeoutError, Stopped])
def test_a_request_that_arrives_at_the_idle_limit_is_answered(connect, error):
    ours, idle = connect(HEALTH)
    assert ours.recv(1000).startswith(b"HTTP/1.1 200")
    ours.sendall(HEALTH.encode())
    idle.end(error)  # before the loop has read it
    assert ours.recv(1000).startswith(b"HTTP/1.1 200")
    idle.end(error)
    assert ours.recv(1000) == b""


def test_idle_connections_of_the_larger_group_make_room_first_unless_a_request_is_arriving(handler, connect):
    _, half = connect("GET / HT")
    (first, idle), (second, busy) = connect(HEALTH), connect(HEALTH)
    for ours in (first, second):
        ours.recv(1000)
    first.sendall(HEALTH.encode())
    handler.shared.make_room(100)  # With this many connections, most are about to end.
    assert len(handler.connections) == 3
    handler.shared.make_room(3)  # before the loop has read it
    assert first.recv(1000).startswith(b"HTTP/1.1 200")
    assert [each in handler.connections for each in (half, idle, busy)] == [True, True, False]
    handler.shared.make_room(3)
    handler.shared.make_room(3)
    gevent.sleep(0)
    assert not handler.connections


def test_an_evicted_connection_ends_at_once_even_if_it_waits_for_a_turn(handler, connect):
    turns = handler.shared.turns
    turns.running = True  # Nobody gets a turn.
    _, queued = connect("G")
    assert turns.waiting[False]
    queued.drop()
    gevent.sleep(0)
    assert (handler.connections, *turns.waiting) == ({}, {}, {})


def test_only_a_change_that_has_arrived_gets_a_place(handler, key, connect):
    body = '{"title": "A", "content": "B"}'
    head = "{} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\n{}Content-Length: {}\r\n\r\n"
    creation = head.format("POST /v1/posts", key, "Content-Type: application/json\r\n", len(body)) + body
    deletion = head.format("DELETE /v1/posts/1", key, "", 1)
    half = [connect(request)[0] for request in (creation[:-1], deletion) for _ in range(MAX_CHANGES)]
    send(handler, creation, b"HTTP/1.1 201 ")
    half[0].sendall(creation[-1:].encode())
    half[-1].sendall(b"x")
    assert [half[at].recv(1000)[9:12] for at in (0, -1)] == [b"201", b"204"]


def test_a_change_that_waits_for_a_place_can_be_evicted(handler, key, connect):
    places = handler.shared.place_for_change(Connection(Client(key, is_known=True)))
    places.free = 0
    request = f"DELETE /v1/posts/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {key}\r\n\r\n"
    (evicted, queued), (other, _) = connect(request), connect(request)
    queued.end()
    assert evicted.recv(1000).startswith(b"HTTP/1.1 503 ")
    places.release()
    assert other.recv(1000).startswith(b"HTTP/1.1 404 ")


A, STRANGER = Client("a", is_known=True), Client("127.0.0.1")


def ask(turns, order, client):
    """Wait for a turn of a client, then add its name to the order."""
    turns.wait(client)
    order.append(client.name)


def served(*clients):
    """The clients of some requests, in the order of their turns."""
    turns, order = Turns(), []
    gevent.joinall([gevent.spawn(ask, turns, order, client) for client in clients])
    return order


def test_clients_take_turns_and_so_do_known_ones_and_strangers_however_many_addresses_there_are():
    assert served(A, A, A, Client("b", is_known=True)) == ["a", "b", "a", "a"]
    addresses = [Client(f"127.0.0.{number}") for number in range(1, 5)]
    assert served(*addresses, A, A) == ["127.0.0.1", "a", "127.0.0.2", "a", "127.0.0.3", "127.0.0.4"]


def test_a_database_answer_comes_before_the_next_request_without_a_key():
    loop, order = EventLoop(), []
    ours, theirs = gevent.socket.socketpair()

    def ask(client):
        loop.turns.wait(Client(client))
        theirs.send(b"answer")
        order.append(client)

    def await_answer():
        loop.wait_for_socket(ours.fileno(), READ)
        order.append("answer")

    with ours, theirs:
        gevent.joinall([gevent.spawn(await_answer), *(gevent.spawn(ask, client) for client in "ab")])
    assert order == ["a", "answer", "b"]


def test_a_client_that_disconnects_passes_its_turn_to_the_next():
    turns, order = Turns(), []
    waiting = [gevent.spawn(ask, turns, order, Client(name)) for name in "ab"]
    gevent.idle()
    waiting += [gevent.spawn(ask, turns, order, Client(name)) for name in "cd"]
    waiting[2].kill(block=False)
    gevent.joinall(waiting)
    assert order == ["a", "b", "d"]


@pytest.mark.parametrize("wait", ["turn", "place"])
def test_a_failing_request_does_not_end_another(wait):
    turns, semaphore, order = Turns(), RoundRobinSemaphore(1), []

    def ask(client):
        if wait == "turn":
            turns.wait(Client(client))
        else:
            semaphore.wait(Client(client))
            semaphore.release()
        order.append(client)
        raise MemoryError

    semaphore.free = 0
    for client in ("a", "b", "c"):
        gevent.spawn_raw(ask, client)
    gevent.sleep(0)
    semaphore.release()
    with gevent.Timeout(20):
        while len(order) < 3:
            gevent.sleep(0.001)
    assert order == ["a", "b", "c"]


def test_a_client_that_wants_many_places_does_not_keep_others_from_getting_one():
    semaphore, order = RoundRobinSemaphore(1), []

    def use(client):
        fairness.CLIENT.set(client)
        assert semaphore.acquire(timeout=20)
        order.append(client.name)
        gevent.sleep(0)
        semaphore.release()

    clients = STRANGER, STRANGER, STRANGER, A, SERVICE
    gevent.joinall([gevent.spawn(use, client) for client in clients], raise_error=True)
    assert order == ["127.0.0.1", "127.0.0.1", "a", "127.0.0.1", ""]
    assert semaphore.free == 1  # All gave it back.


def test_a_request_gives_up_on_a_place_that_is_not_free_in_time():
    semaphore = RoundRobinSemaphore(1)
    assert [semaphore.acquire(timeout=0.01) for _ in range(2)] == [True, False]
    semaphore.release()
    assert semaphore.acquire(timeout=0.01)


def test_strangers_cannot_end_requests_of_known_clients():
    shared = SharedState(Config(), Turns())
    strangers, known = shared.strangers.small, shared.known.small
    sizes = known.left, strangers.left
    keyed, others = Connection(), [Connection() for _ in range(3)]
    assert known.reserve(keyed, known.left * 6 // 10)
    size = strangers.left * 6 // 10
    assert all(strangers.reserve(other, size) for other in others)
    assert [connection.ended for connection in (keyed, *others)] == [False, True, True, False]
    for connection in (keyed, *others):
        known.release(connection)
        strangers.release(connection)
    assert (known.left, strangers.left) == sizes


def test_a_client_with_most_of_the_places_for_large_bodies_has_to_give_one_up():
    budget = Budget(60, fairness.oldest_of_busiest)
    slow = [Connection("slow") for _ in range(7)]
    assert [budget.reserve(connection, 10) for connection in slow] == [True] * 6 + [False]
    others = [Connection("other") for _ in range(4)]
    assert [budget.reserve(connection, 10) for connection in others] == [True] * 3 + [False]
    assert [connection.ended for connection in slow] == [True] * 3 + [False] * 4
    assert not any(connection.ended for connection in others)
    for connection in slow + others:
        budget.release(connection)
    assert budget.left == 60


def test_heads_make_room_before_bodies_and_then_those_of_the_busiest_or_the_same_client():
    budget = Budget(60, fairness.oldest_head)
    bodies = [Connection(client, is_accepted=True) for client in ("busy", "busy", "busy", "other")]
    heads = [Connection("other") for _ in range(4)]
    new = [Connection(client, is_accepted=True) for client in ("other", "new", "new", "new", "new")]
    assert all(budget.reserve(connection, 10) for connection in bodies + heads + new[:2])
    assert [connection.ended for connection in bodies + heads] == [False] * 4 + [True] * 4
    assert all(budget.reserve(connection, 10) for connection in new[2:])
    assert [connection.ended for connection in bodies + new] == [True, *[False] * 4, *[True] * 2, *[False] * 2]


@pytest.mark.parametrize("in_background", [False, True])
def test_if_no_thread_can_be_started_a_request_is_temporarily_refused(in_background):
    class Full:
        def apply(self, *arguments):
            raise RuntimeError("can't start new thread")

    loop = EventLoop()
    loop.threads = loop.background = Full()
    with pytest.raises(Unavailable, match="can't start new thread") as caught:
        loop.run_in_thread(print, in_background=in_background)
    assert caught.value.retry_after == 1
