"""Full disks, no descriptors left, and clocks that are wrong."""

import contextlib
import os
import resource
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from featurewatch.stack.process.server import Server
from tests.faults.fault import Fault, UnavailableError
from tests.faults.rows.network import in_mode
from tests.faults.rows.processes import STALLED, killed
from tests.faults.servers import BUS_LINKS, QUORUM_LINKS
from tests.faults.stack import Stack
from tests.processes import Process

FILLER: Final = "filler"
_LIBFAKETIME: Final = "*/faketime/libfaketimeMT.so.1"
_C11_WAITS: Final = Path(__file__).with_name("c11_waits.c")
_DAY_S: Final = 86_400


def fill(directory: Path) -> None:
    """Takes all the room that there is."""
    with (directory / FILLER).open("ab", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(bytes(1 << 12)):
            pass


@contextmanager
def small_disk(directory: Path, size_mb: int) -> Iterator[None]:
    """A file system of its own under a directory, with what is in it already.

    Raises:
        UnavailableError: the user may not mount.
    """
    if os.geteuid() != 0:
        raise UnavailableError("only root can mount a small file system")
    content = directory.with_name(f"{directory.name}-content")
    directory.rename(content)
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "featurewatch-faults"]
    done = subprocess.run([*mount, str(directory)], capture_output=True, text=True, check=False)
    if done.returncode:
        directory.rmdir()
        content.rename(directory)
        raise UnavailableError(f"a small file system cannot be mounted: {done.stderr.strip()}")
    try:
        subprocess.run(["cp", "-a", f"{content}/.", str(directory)], check=True)
        yield
    finally:
        back = directory.with_name(f"{directory.name}-back")
        subprocess.run(["cp", "-a", f"{directory}/.", str(back)], check=False)
        subprocess.run(["umount", "-l", str(directory)], check=True)
        directory.rmdir()
        (back if back.exists() else content).rename(directory)


@contextmanager
def worker_disk_full(stack: Stack, name: str, *, restarted: bool) -> Iterator[None]:
    """The worker's data directory, or the temporary one, is full."""
    directory = stack.directory / name
    stack.hold(stack.worker)
    with small_disk(directory, 64):
        stack.release(stack.worker)
        _until_ready(stack)
        fill(directory)
        if restarted:
            stack.hold(stack.source, stack.worker)
            stack.release(stack.source, stack.worker)
        try:
            yield
        finally:
            (directory / FILLER).unlink()
            stack.hold(stack.worker)
    stack.release(stack.worker)


@contextmanager
def bus_disk_full(stack: Stack) -> Iterator[None]:
    """The bus has no room left; when there is, it is started again, as Kafka must be."""
    node = stack.bus.node(1)
    node.stop()
    with small_disk(node.data, 256):
        _start(node)
        fill(node.data)
        try:
            yield
        finally:
            (node.data / FILLER).unlink()
            node.kill()
    _start(node)


@contextmanager
def no_descriptors(stack: Stack, process: Process, links: tuple[str, ...]) -> Iterator[None]:
    """A process can open nothing more, and loses the connections that it has."""
    limits = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    used = len(os.listdir(f"/proc/{process.pid}/fd"))
    pid = process.pid
    with in_mode(stack, "cut", links):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (max(8, used // 2), limits[1]))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)


@contextmanager
def clock_off(stack: Stack, name: str, offset_s: int) -> Iterator[None]:
    """The clock of one process is off, from its next start on, until another start.

    Raises:
        UnavailableError: libfaketime or a C compiler is not installed.
    """
    library = next(iter(Path("/usr/lib").glob(_LIBFAKETIME)), None)
    if library is None:
        raise UnavailableError("libfaketime is not installed (Debian: apt-get install libfaketime)")
    waits = stack.directory / "c11_waits.so"
    _compile(_C11_WAITS, waits)
    environment = {
        "LD_PRELOAD": f"{library} {waits}",
        "FAKETIME": f"{offset_s:+d}",
        "DONT_FAKE_MONOTONIC": "1",
        # The times of files are real: else each start would compile all modules again.
        "NO_FAKE_STAT": "1",
    }
    (process,) = (one for one in stack.processes if one.name == name)
    with killed(stack, name):
        process.environment.update(environment)
    try:
        yield
    finally:
        for variable in environment:
            del process.environment[variable]
        with killed(stack, name):
            pass


def _compile(source: Path, library: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        raise UnavailableError("there is no C compiler, cc (Debian: apt-get install gcc)")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)]
    subprocess.run(command, check=True)


def _start(server: Server) -> None:
    server.start(wait=False)  # type: ignore[attr-defined]
    server.wait_ready()


def _until_ready(stack: Stack) -> None:
    deadline = time.monotonic() + 60
    while not stack.are_ready():
        if time.monotonic() > deadline:
            raise TimeoutError("source and worker are not ready on the small disk")
        time.sleep(0.1)


ROWS: Final = (
    Fault(
        "disk-full-worker",
        "the worker's data directory (RocksDB) is full for 15 s",
        lambda s: worker_disk_full(s, "worker", restarted=False),
        hold_s=15,
        store="rocksdb",
        may_end=True,
        may_fire=STALLED,
    ),
    Fault(
        "disk-full-tmp",
        "the temporary directory is full, and source and worker start",
        lambda s: worker_disk_full(s, "tmp", restarted=True),
        hold_s=15,
        may_fire=STALLED,
    ),
    Fault(
        "disk-full-bus",
        "the bus's disk is full for 20 s, then it is started with room",
        bus_disk_full,
        hold_s=20,
        may_fire=STALLED,
    ),
    Fault(
        "descriptors-source",
        "the source can open no file or socket for 20 s, after its connections were cut",
        lambda s: no_descriptors(s, s.source, (*QUORUM_LINKS, BUS_LINKS["source"])),
        hold_s=20,
        may_fire=STALLED,
    ),
    Fault(
        "descriptors-worker",
        "the worker can open no file or socket for 20 s, after its connections were cut",
        lambda s: no_descriptors(s, s.worker, (BUS_LINKS["worker"],)),
        hold_s=20,
        may_end=True,
        may_fire=STALLED,
    ),
    *(
        Fault(
            f"clock-{name}-{text}",
            f"the clock of the {name} is a day {direction}, for 20 s",
            partial(clock_off, name=name, offset_s=days * _DAY_S),
            hold_s=20,
            # The worker compares the times of a source with those of the bus.
            may_fire=("clock-ahead",) if (name, text) == ("source", "ahead") else (),
        )
        for name in ("source", "worker")
        for text, direction, days in (("ahead", "ahead", 1), ("behind", "behind", -1))
    ),
)
