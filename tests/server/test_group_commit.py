"""Creations that arrive at the same time share commits."""

import json
import os
import signal
import struct

ROUNDS, CONNECTIONS = 4, 16


def commits(wal):
    """Count the commits in a -wal: the last frame of each contains the size of the database."""
    data = wal.read_bytes()
    page_size, _, salt = struct.unpack(">8xII8s", data[:24])
    frames = (data[start : start + 24] for start in range(32, len(data), page_size + 24))
    return sum(struct.unpack(">4xI8s", frame[:16])[0] > 0 and frame[8:16] == salt for frame in frames)


def test_sixteen_creations_share_a_few_commits(service, opened):
    request = service.creation(json.dumps({"title": "A", "content": "word " * 100}).encode())
    connections = [opened.enter_context(service.connect()) for _ in range(CONNECTIONS)]
    wal = service.database.with_name("blog.db-wal")
    service.request("GET", "/v1/posts")  # The use of the key is recorded.
    taken = []
    for _ in range(ROUNDS):
        before = commits(wal)
        os.kill(service.worker, signal.SIGSTOP)  # so that they arrive at the same time even on a busy machine
        for connection in connections:
            connection.sendall(request)
        os.kill(service.worker, signal.SIGCONT)
        for connection in connections:
            assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")
        taken.append(commits(wal) - before)
    assert 0 < min(taken) <= CONNECTIONS / 4  # A busy machine may interrupt some rounds.
