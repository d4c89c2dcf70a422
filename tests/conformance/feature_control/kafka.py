"""Kafka's own controller classes in a JVM that answers line by line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from featurewatch.stack.java.jars import Cache, parse_release
from featurewatch.stack.learning.programs import CONTROLLER, controller_process
from featurewatch.stack.learning.programs import ControllerProcess as ControllerHarness
from scripts.generate_programs import SOURCES
from scripts.java_source import compile_java

__all__ = ["ALL_RELEASES", "RELEASES", "ControllerHarness", "controller_harness", "java_harness"]

_SHARED = Path(__file__).resolve().parents[1] / "java"
_LOGS_MOVED = (4, 4)
_OLDER = Path(__file__).resolve().parent / "java"
_NEWEST = SOURCES / "controller" / "newest"
RELEASES = ("3.9.1", "4.3.0", "4.4.0")
"""The releases that the tests ask."""

ALL_RELEASES = {
    "3.9.1": _OLDER / "v391",
    "4.0.0": _OLDER / "v400",
    "4.1.0": _OLDER / "v430",
    "4.2.0": _OLDER / "v430",
    "4.3.0": _OLDER / "v430",
    "4.4.0": _NEWEST,
}
"""The releases that can be asked, and the folder of what differs between them."""


def logs_source(release: str) -> Path:
    """The class that makes Kafka's ``LogContext``, whose package 4.4 has moved."""
    is_moved = parse_release(release)[:2] >= _LOGS_MOVED
    return _SHARED / ("v440" if is_moved else "v391") / "Logs.java"


@contextmanager
def java_harness(
    sources: Sequence[Path], main_class: str, release: str, cache: Cache, directory: Path
) -> Iterator[ControllerHarness]:
    """Compiles sources against a release's jars and runs ``main_class`` until the block ends."""
    jars = cache.class_path(release)
    compile_java(sources, directory, cache, jars)
    with controller_process([directory, *jars], main_class) as process:
        yield process


@contextmanager
def controller_harness(release: str, cache: Cache, directory: Path) -> Iterator[ControllerHarness]:
    """Compiles the harness into a directory and runs it until the end of the block."""
    sources = [
        _NEWEST.parent / "Harness.java",
        *sorted(ALL_RELEASES[release].glob("*.java")),
        logs_source(release),
    ]
    with java_harness(sources, CONTROLLER, release, cache, directory) as harness:
        yield harness
