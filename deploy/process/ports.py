"""Reserves loopback ports that stay reserved while a node is down.

A port lies below the range that the kernel uses for outgoing connections, so that no other process
gets it by accident between a stop and a start. A lock file keeps two stacks on one machine from
choosing the same port; the lock ends with the process that holds it.
"""

import contextlib
import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

from featurewatch.deploy.errors import StackError

LOOPBACK = "127.0.0.1"
_RANGE = range(15_000, 32_000)


class Ports:
    """The ports that one cluster reserves."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.gettempdir()) / f"featurewatch-ports-{os.getuid()}"
        self._locks: dict[int, IO[str]] = {}

    def reserve(self) -> int:
        """A port that nobody listens on, reserved until `release`.

        Raises:
            StackError: if 200 random candidates are all in use.
        """
        self._directory.mkdir(mode=0o700, exist_ok=True)
        for port in random.sample(_RANGE, 200):
            if port not in self._locks and self._lock(port):
                if _is_free(port):
                    return port
                self._locks.pop(port).close()
        raise StackError(f"no free port between {_RANGE.start} and {_RANGE.stop} on {LOOPBACK}")

    def release(self) -> None:
        """Releases all ports."""
        for lock in self._locks.values():
            lock.close()
        self._locks.clear()

    def _lock(self, port: int) -> bool:
        file = (self._directory / str(port)).open("w")
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._locks[port] = file
            return True
        file.close()
        return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
