"""Kazoo's callbacks come in connection order."""

import socket
import threading
from typing import Any

import pytest

from featurewatch.streams.zookeeper.in_order_handler import InOrderHandler


def test_an_immediate_response_is_delivered_in_the_connection_thread() -> None:
    """However late the requesting thread continues, the connection's next event comes after it."""
    handler = InOrderHandler()
    handler.start()
    delivered: list[tuple[Any, str]] = []

    def request() -> None:
        result = handler.async_result()
        connection = threading.Thread(target=result.set, args=(7,), name="connection")
        connection.start()
        connection.join()

    handler.send(
        request, lambda result: delivered.append((result.value, threading.current_thread().name))
    )
    assert delivered == [(7, "connection")]


def test_only_the_first_result_of_a_request_is_linked() -> None:
    """Kazoo creates further results internally; a later one has no callback."""
    handler = InOrderHandler()
    handler.start()
    delivered: list[Any] = []
    results = []

    def request() -> None:
        results.extend([handler.async_result(), handler.async_result()])

    handler.send(request, delivered.append)
    later = handler.async_result()
    for result in (later, *reversed(results)):
        result.set(None)
    assert delivered == results[:1]


def test_a_failing_watcher_does_not_end_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    """The failure is logged, and the calling thread continues."""

    def fails() -> None:
        raise RuntimeError("broken")

    InOrderHandler().completion_queue.put(fails)
    assert "handling a response of kazoo's failed" in caplog.text


def test_sockets_are_waited_for() -> None:
    """Readable sockets, writable sockets, or none before the timeout."""
    handler = InOrderHandler()
    client, server = socket.socketpair()
    with client, server:
        assert handler.select([client], [], [], 0.0) == ([], [], [])
        assert handler.select([], [client], [], 0.0) == ([], [client], [])
        server.send(b"x")
        assert handler.select([client, server], [], [], 5.0) == ([client], [], [])
