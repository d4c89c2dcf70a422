"""Reserves loopback ports that stay reserved while a node is down.

A port is below the range that the kernel uses for outgoing connections, so that no other process
gets it by accident between a stop and a start. A lock file keeps two stacks on one machine from
choosing the same port; the lock ends with the process that holds it.
"""

import atexit
import fcntl
import os
import random
import shutil
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from featurewatch.common.private_files import open_private_directory
from featurewatch.stack.errors import StackError

LOOPBACK = "127.0.0.1"
_RANGE = range(15_000, 32_000)
_OPEN_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Ports:
    """The ports that one cluster reserves."""

    def __init__(self) -> None:
        self._locks: dict[int, int] = {}

    def reserve(self, preferred: int | None = None) -> int:
        """A port that nobody listens on, reserved until `release`: ``preferred`` if it is free.

        Raises:
            StackError: if 200 random candidates are all in use.
        """
        candidates = random.sample(_RANGE, min(200, len(_RANGE)))
        if preferred is not None and preferred in _RANGE:
            candidates.insert(0, preferred)
        directory = _open_lock_directory()
        try:
            for port in candidates:
                if port not in self._locks and self._lock(port, directory):
                    if _is_free(port):
                        return port
                    os.close(self._locks.pop(port))
        finally:
            os.close(directory)
        raise StackError(f"no free port between {_RANGE.start} and {_RANGE.stop} on {LOOPBACK}")

    def release(self) -> None:
        """Releases all ports."""
        for lock in self._locks.values():
            os.close(lock)
        self._locks.clear()

    def _lock(self, port: int, directory: int) -> bool:
        try:
            lock = os.open(str(port), _OPEN_FLAGS, 0o600, dir_fd=directory)
        except OSError:  # a link, or a directory
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._locks[port] = lock
        return True


def _open_lock_directory() -> int:
    """The directory that all stacks of this user share, or one of this process's own if another
    user created that one first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    shared = [Path(runtime) / "featurewatch-ports"] if runtime else []
    shared.append(Path(tempfile.gettempdir()) / f"featurewatch-ports-{os.getuid()}")
    for path in (*shared, None):
        directory = open_private_directory(path or _own_directory())
        if directory is not None:
            return directory
    raise StackError(
        f"no private directory can be created in {tempfile.gettempdir()}: set XDG_RUNTIME_DIR or "
        "TMPDIR to a directory that only you can write"
    )


@cache
def _own_directory() -> Path:
    path = Path(tempfile.mkdtemp(prefix="featurewatch-ports-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
