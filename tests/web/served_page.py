"""A page in a separate process, for tests where it must not share a core with its clients.

``python -m tests.web.served_page CLUSTERS`` prints its port, and ends with its standard input.
"""

import asyncio
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.paths import ROOT
from tests.processes import popen
from tests.web.samples import alert_of, read_model, state_of

UNLIMITED = 1e9


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


def main(clusters: int, max_requests_per_s: float) -> None:
    """Serves this many clusters."""
    names = [f"cluster-{number:04}" for number in range(clusters)]
    states = (state_of(name, at_ms=now_ms()) for name in names)
    alerts = (alert_of(name, at_ms=now_ms()) for name in names[::10])
    settings = PageSettings(
        port=0,
        access=AccessSettings(max_requests_per_s=max_requests_per_s),
    )
    model = read_model([*states, *alerts])
    server = PageServer(settings, model, WorkerRows(), now_ms, random.random)

    async def run() -> None:
        async with server.serving():
            print(server.port, flush=True)  # noqa: T201 - its first line
            await asyncio.to_thread(sys.stdin.read)

    asyncio.run(run())


@contextmanager
def served_page(clusters: int, max_requests_per_s: float = UNLIMITED) -> Iterator[tuple[int, int]]:
    """The page; gives its port and the id of its process."""
    arguments = map(str, (clusters, max_requests_per_s))
    command = [sys.executable, "-m", "tests.web.served_page", *arguments]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with popen(command, cwd=ROOT, **pipes) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid


def memory_mb(pid: int, field: str) -> float:
    """``VmRSS`` or ``VmHWM`` of a process."""
    text = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
