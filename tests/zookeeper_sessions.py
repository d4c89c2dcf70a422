"""Ends a ZooKeeper session as somebody who has its password can: by resuming and closing it."""

import socket
import time
from struct import Struct

from kazoo.protocol.serialization import Close, Connect, int_struct

_RESUMED = Struct("!ii")
"""How the reply to a connect begins: the protocol's version, and the timeout in milliseconds."""


def expire(connect: str, client_id: tuple[int, bytes], deadline_s: float = 30.0) -> None:
    """Ends the session of that id and password on the first server named.

    A kazoo client would not do: the one whose session it is connects again at once and takes the
    session back, which costs whoever holds it the connection, and either may be the one that is
    in the middle of a call. Here the close follows the connect in one write, and it is done when
    a server says that the session is no more.

    Raises TimeoutError if it still is one at the deadline.
    """
    host, port = connect.partition("/")[0].partition(",")[0].rsplit(":", 1)
    deadline = time.monotonic() + deadline_s
    while _resume_and_close(host, int(port), client_id):
        if time.monotonic() > deadline:
            raise TimeoutError(f"session 0x{client_id[0]:x} does not end in {deadline_s:g} s")


def _resume_and_close(host: str, port: int, client_id: tuple[int, bytes]) -> bool:
    """Whether there was such a session, or nobody knows."""
    session, password = client_id
    connect = Connect(0, 0, 10_000, session, password, False).serialize()
    close = int_struct.pack(1) + int_struct.pack(Close.type)
    with socket.create_connection((host, port), 10) as link:
        try:
            link.sendall(b"".join(int_struct.pack(len(f)) + f for f in (connect, close)))
            reply = link.makefile("rb").read()
        except OSError:
            return True
    return len(reply) < 4 + _RESUMED.size or _RESUMED.unpack_from(reply, 4)[1] > 0
