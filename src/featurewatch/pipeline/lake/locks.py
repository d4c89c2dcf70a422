"""The locks of a lake that is a directory of this machine."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.spark.session import jvm

FILLING: Final = "lock"
"""Who has it is the only process that adds messages, columns or tables."""
MAINTAINING: Final = "maintenance-lock"
"""Who has it is the only process that compacts tables and removes files."""

_DOES: Final = {FILLING: "fills", MAINTAINING: "maintains"}
_WAIT_S: Final = 30.0
_POLL_S: Final = 0.2


class Locks:
    """Locks that other processes respect, each a file below the lake's ``directory``.

    The session's JVM holds a lock, not this process: if this process is killed, the JVM may still
    be writing, and the next process must wait for it. A lake that is not a directory of this
    machine (None) has no locks; the operator must make sure that only one process works on it.
    """

    def __init__(self, session: SparkSession, directory: Path | None) -> None:
        self._session = session
        self._directory = directory
        self._channels: dict[str, Any] = {}
        self._held: set[str] = set()

    def take(self, name: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Takes a lock; ``monotonic`` gives seconds of a clock that does not go back.

        Raises:
            LakeError: Another process has it, or the directory cannot be written.
        """
        deadline = monotonic() + _WAIT_S
        while not self.try_take(name):
            if monotonic() > deadline:
                raise LakeError(
                    f"another process {_DOES[name]} the lake {self._directory}: wait for its end, "
                    "or stop it"
                )
            time.sleep(_POLL_S)

    def try_take(self, name: str) -> bool:
        """Takes a lock unless another process has it; returns whether it is held now.

        Raises:
            LakeError: The directory cannot be written.
        """
        if self._directory is None or name in self._held:
            return True
        file = self._directory / name
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            file.touch()
        except OSError as error:
            raise LakeError(
                f"the lake {self._directory} cannot be written ({error.strerror}): "
                "choose another with --lake"
            ) from None
        # Not closed as long as it waits: to close one channel of a file releases the lock that this
        # JVM may have on it for another `Lake`.
        if name not in self._channels:
            opened = jvm(self._session).java.io.RandomAccessFile(str(file), "rw")
            self._channels[name] = opened.getChannel()
        if not _try_lock(self._channels[name]):
            return False
        self._held.add(name)
        return True

    def release(self, name: str) -> None:
        """Releases a lock, if it is held."""
        if name in self._held:
            self._held.remove(name)
            self._channels.pop(name).close()


def _try_lock(channel: Any) -> bool:
    try:
        return channel.tryLock() is not None
    except Py4JJavaError as error:
        if "OverlappingFileLockException" in str(error.java_exception):
            return False  # this JVM holds it, for another `Lake`
        raise
