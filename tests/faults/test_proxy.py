"""The proxy does to bytes what its modes promise."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from tests.faults.proxy import LOOPBACK, Proxy

DATA = b"0123456789" * 400


@contextlib.contextmanager
def echo_server() -> Iterator[int]:
    """A server that sends back what it gets."""
    with socket.create_server((LOOPBACK, 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=answer, args=(connection,), daemon=True).start()

        def answer(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                while data := connection.recv(1 << 16):
                    connection.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield int(server.getsockname()[1])


@pytest.fixture(scope="module")
def link() -> Iterator[tuple[Proxy, int]]:
    """A proxy before an echo server, and its port."""
    with echo_server() as port, Proxy() as proxy:
        yield proxy, proxy.listen("link", 0, port)


def connect(port: int) -> socket.socket:
    """A connection with a timeout."""
    return socket.create_connection((LOOPBACK, port), timeout=60)


def exchanged(connection: socket.socket, wait_s: float = 0.5) -> bytes:
    """The data that comes back, until nothing more does for a moment."""
    connection.sendall(DATA)
    connection.settimeout(wait_s)
    back = b""
    with contextlib.suppress(TimeoutError):
        while len(back) < len(DATA) + 64 and (data := connection.recv(1 << 16)):
            back += data
    return back


def test_pass_and_cut(link: tuple[Proxy, int]) -> None:
    """Bytes pass whole; a cut ends what is open, and new connections end at once."""
    proxy, port = link
    proxy.set_mode("link", "pass")
    with connect(port) as connection:
        assert exchanged(connection) == DATA
        proxy.set_mode("link", "cut")
        with contextlib.suppress(ConnectionResetError):
            assert connection.recv(1) == b""
    with connect(port) as connection, contextlib.suppress(ConnectionResetError):
        assert connection.recv(1) == b""


def test_half_open(link: tuple[Proxy, int]) -> None:
    """Nothing comes back; afterwards the old connection stays silent, and a new one works."""
    proxy, port = link
    proxy.set_mode("link", "pass")
    with connect(port) as old:
        assert exchanged(old) == DATA
        proxy.set_mode("link", "half-open")
        assert exchanged(old) == b""
        proxy.set_mode("link", "pass")
        assert exchanged(old) == b""
        with connect(port) as new:
            assert exchanged(new) == DATA


@pytest.mark.parametrize(("mode", "length"), [("garbage", len(DATA) + 64), ("truncate", 0)])
def test_damage(link: tuple[Proxy, int], mode: str, length: int) -> None:
    """64 bytes more, or some bytes fewer; and not again on the same connection."""
    proxy, port = link
    proxy.set_mode("link", mode)
    with connect(port) as connection:
        back = exchanged(connection)
        assert back != DATA
        assert len(back) == length or (mode == "truncate" and len(back) < len(DATA))
        assert exchanged(connection)[-len(DATA) :] == DATA


@pytest.mark.parametrize(("mode", "least_s"), [("delay", 3.5), ("throttle", 3.0)])
def test_slow(link: tuple[Proxy, int], mode: str, least_s: float) -> None:
    """Two seconds each way, or a kilobyte a second."""
    proxy, port = link
    proxy.set_mode("link", mode)
    start_s = time.monotonic()
    with connect(port) as connection:
        connection.settimeout(30)
        connection.sendall(DATA)
        back = b""
        while len(back) < len(DATA):
            back += connection.recv(1 << 16)
    assert back == DATA
    assert time.monotonic() - start_s >= least_s
