"""Runs the command of the reference, and kills the process at one of its writes to the disk.

``python crashing.py KIND WHEN ARGUMENT …``: the process ends by SIGKILL ``before`` or ``after``
(WHEN) it first makes a file durable of this KIND: ``log``, ``quorum-state``, ``checkpoint`` (a
snapshot) or ``epochs``. The arguments are those of ``python -m featurewatch.reference.kraft``.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

KINDS = {
    ".log": "log",
    "quorum-state.tmp": "quorum-state",
    "leader-epoch-checkpoint.tmp": "epochs",
    ".checkpoint.tmp": "checkpoint",
}


def kind_of(descriptor: int) -> str:
    """What the file of a descriptor is; empty: another one."""
    name = os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}"))
    return next((kind for end, kind in KINDS.items() if name.endswith(end)), "")


def crashing(original: Callable[[Any], None], kind: str, when: str) -> Callable[[Any], None]:
    """A replacement of ``os.fsync`` or ``os.fdatasync``."""

    def sync(descriptor: Any) -> None:
        is_point = kind_of(descriptor) == kind
        if is_point and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        original(descriptor)
        if is_point:
            os.kill(os.getpid(), signal.SIGKILL)

    return sync


if __name__ == "__main__":
    _, kind, when, *arguments = sys.argv
    for name in ("fsync", "fdatasync"):
        setattr(os, name, crashing(getattr(os, name), kind, when))
    from featurewatch.reference.kraft.__main__ import main

    sys.exit(main(arguments))
