"""Kafka's own tools, each in a JVM that stays, and our commands, asked the same."""

import base64
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from featurewatch.cli.main import main
from featurewatch.deploy.java.jars import Cache, Jars, java_command
from scripts.java_source import compile_java

_SOURCE = Path(__file__).resolve().parent / "java" / "Asked.java"

COMPAT = {"3.9.1": "3.9", "4.3.0": "4.3"}


@dataclass(frozen=True)
class CommandResult:
    """An exit code and both outputs."""

    code: int
    out: str
    err: str


class KafkaFeatures:
    """A tool of a release, in a JVM that stays: it is asked many times."""

    def __init__(self, process: "subprocess.Popen[str]", release: str) -> None:
        self.release = release
        self._in, self._out = _opened(process.stdin), _opened(process.stdout)
        assert self._out.readline() == "ready\n"

    def __call__(self, *arguments: str) -> CommandResult:
        """What the tool does with these arguments."""
        self._in.write("\t".join(arguments) + "\n")
        self._in.flush()
        code, out, err = self._out.readline().split()
        return CommandResult(int(code), _decoded(out), _decoded(err))


@contextmanager
def kafka_features(release: str, cache: Cache, directory: Path) -> Iterator[KafkaFeatures]:
    """Runs the tool until the end of the block."""
    with kafka_tool(_SOURCE, "org.apache.kafka.tools.Asked", release, cache, directory) as running:
        yield running


@contextmanager
def kafka_tool(
    source: Path, main_class: str, release: str, cache: Cache, directory: Path, *arguments: str
) -> Iterator[KafkaFeatures]:
    """Compiles and runs a program that takes a line of arguments and prints a line, again and
    again, until the end of the block."""
    jars = cache.class_path(release, Jars.TOOLS)
    compile_java([source], directory, cache, jars)
    command = java_command(
        [directory, *jars],
        main_class,
        *arguments,
        heap_mb=256,
        options=["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"],
    )
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
    )
    try:
        yield KafkaFeatures(process, release)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


class FeaturesCommand:
    """``featurewatch features``, or another group, in this process as a user's shell runs it."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        group: str = "features",
    ) -> None:
        self._group = group
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        # Logging is set up once a process.
        monkeypatch.setattr("featurewatch.cli.logs.set_up", lambda **_: None)

    def __call__(self, *arguments: str) -> CommandResult:
        """What the command does with these arguments."""
        self._monkeypatch.setattr(sys, "argv", ["featurewatch", self._group, *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        code = ended.value.code
        return CommandResult(code if isinstance(code, int) else 0, out, err)


def _opened(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _decoded(text: str) -> str:
    return base64.b64decode(text[1:]).decode()
