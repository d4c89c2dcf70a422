"""Kafka's own controller classes in a JVM that answers line by line."""

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from featurewatch.stack.java.jars import Cache, java_command, parse_release
from scripts.java_source import compile_java

_SHARED = Path(__file__).resolve().parents[1] / "java"
_LOGS_MOVED = (4, 4)
_SOURCES = Path(__file__).resolve().parent / "java"
RELEASES = ("3.9.1", "4.3.0", "4.4.0")
"""The releases that the tests ask."""

ALL_RELEASES = {
    "3.9.1": "v391",
    "4.0.0": "v400",
    "4.1.0": "v430",
    "4.2.0": "v430",
    "4.3.0": "v430",
    "4.4.0": "v430",
}
"""The releases that can be asked, and the folder of what differs between them."""


class ControllerHarness:
    """A running harness; ``java`` is the version of Java that it runs on."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._in = _opened(process.stdin)
        self._out = _opened(process.stdout)
        self.java = int(self._line())

    def responses(self, questions: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """An answer for each question, in order."""
        for question in questions:
            self._in.write(json.dumps(question) + "\n")
            self._in.flush()
            yield json.loads(self._line())

    def _line(self) -> str:
        line: str = self._out.readline()
        if not line:
            raise RuntimeError(f"the harness ended with {self._process.wait()}")
        return line


def _opened(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


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
    command = java_command(
        [directory, *jars],
        main_class,
        heap_mb=256,
        options=["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"],
    )
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        yield ControllerHarness(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def controller_harness(release: str, cache: Cache, directory: Path) -> Iterator[ControllerHarness]:
    """Compiles the harness into a directory and runs it until the end of the block."""
    sources = [
        _SOURCES / "Harness.java",
        *sorted((_SOURCES / ALL_RELEASES[release]).glob("*.java")),
        logs_source(release),
    ]
    main_class = "org.apache.kafka.controller.Harness"
    with java_harness(sources, main_class, release, cache, directory) as harness:
        yield harness
