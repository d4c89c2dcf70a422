"""Runs the command of the reference, and kills the process at one of its writes to the disk.

``python crashing.py EFFECT FILE WHEN ARGUMENT …``: the process ends by SIGKILL ``before`` or
``after`` (WHEN) it first makes a file durable while it performs an effect of the voter. FILE is one
of `KINDS`, with ``-2`` for the second one of this kind in the effect, and so on. The arguments are
those of ``python -m featurewatch.reference.kraft``.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from featurewatch.reference.kraft.storage.disk import Storage

KINDS = {
    ".log": "log",
    ".log.tmp": "rest",  # what is after a snapshot, when the log before it is deleted
    "quorum-state.tmp": "quorum-state",
    "leader-epoch-checkpoint.tmp": "epochs",
    ".checkpoint.tmp": "checkpoint",
    "__cluster_metadata-0": "directory",
}
POINTS = {
    "Persist": ("quorum-state", "directory"),
    "Flush": ("log", "epochs", "directory"),
    "Truncate": ("log", "epochs", "directory"),
    "WriteSnapshot": ("log", "checkpoint", "directory", "rest", "directory-2", "directory-3"),
    "InstallSnapshot": (
        *("log", "checkpoint", "directory", "directory-2", "directory-3"),
        *("epochs", "directory-4"),
    ),
}
"""What each effect makes durable, in order: all that `Storage.perform` does with one segment."""


class Crash:
    """Ends the process at one write."""

    def __init__(self, effect: str, file: str, when: str) -> None:
        kind, _, number = file.rpartition("-")
        self._kind, self._number = (kind, int(number)) if number.isdecimal() else (file, 1)
        self._effect = effect
        self._when = when
        self._seen = 0
        self._is_performing = False

    def performing(self, original: Callable[..., bool]) -> Callable[..., bool]:
        """A replacement of ``Storage.perform``."""

        def perform(storage: Storage, effect: Any, log: Any) -> bool:
            self._is_performing = type(effect).__name__ == self._effect
            self._seen = 0
            try:
                return original(storage, effect, log)
            finally:
                self._is_performing = False

        return perform

    def syncing(self, original: Callable[[Any], None]) -> Callable[[Any], None]:
        """A replacement of ``os.fsync`` or ``os.fdatasync``."""

        def sync(descriptor: Any) -> None:
            is_kind = self._is_performing and kind_of(descriptor) == self._kind
            self._seen += is_kind
            is_point = is_kind and self._seen == self._number
            if is_point and self._when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            original(descriptor)
            if is_point:
                os.kill(os.getpid(), signal.SIGKILL)

        return sync


def kind_of(descriptor: int) -> str:
    """What the file of a descriptor is; empty: another one."""
    name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
    return next((kind for end, kind in KINDS.items() if name.endswith(end)), "")


if __name__ == "__main__":
    _, effect, file, when, *arguments = sys.argv
    crash = Crash(effect, file, when)
    Storage.perform = crash.performing(Storage.perform)  # type: ignore[method-assign]
    for name in ("fsync", "fdatasync"):
        setattr(os, name, crash.syncing(getattr(os, name)))
    from featurewatch.reference.kraft.__main__ import main

    sys.exit(main(arguments))
