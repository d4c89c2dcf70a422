"""A process of the reference ends with the process that started it."""

import os
import socket
import subprocess
import sys
from contextlib import closing

from tests.paths import ROOT
from tests.processes import popen
from tests.waiting import eventually

OWNER = (
    "import sys; from tests.reference.zookeeper.process import ReferenceProcess; "
    "print(ReferenceProcess(sys.argv[1]).pid, flush=True); sys.stdin.read()"
)


def runs(pid: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_it_ends_when_its_owner_is_killed() -> None:
    """It waits for a ZooKeeper that never answers, and has nobody to stop it."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        connect = f"127.0.0.1:{silent.getsockname()[1]}"
        with popen([sys.executable, "-c", OWNER, connect], cwd=ROOT, **pipes) as owner:
            assert owner.stdout is not None
            pid = int(owner.stdout.readline())
            assert runs(pid)
            owner.kill()
            owner.wait()
            assert eventually(lambda: not runs(pid), 5)
