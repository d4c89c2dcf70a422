"""Kafka's own tools, in a JVM that stays, and our commands, which are given the same."""

import base64
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Final

import pytest

from featurewatch.cli.main import main
from featurewatch.stack.java.jars import Cache, Jars, java_command
from scripts.java_source import compile_java

_SOURCE = Path(__file__).resolve().parent / "java" / "KafkaTools.java"
_OUR_LINE = "featurewatch: "

COMPAT = {"3.9.1": "3.9", "4.3.0": "4.3"}
FEATURES: Final = "org.apache.kafka.tools.FeatureCommand"
TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
REASSIGN: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
ELECT: Final = "org.apache.kafka.tools.LeaderElectionCommand"
QUORUM: Final = "org.apache.kafka.tools.MetadataQuorumCommand"


@dataclass(frozen=True)
class CommandResult:
    """An exit code and both outputs."""

    code: int
    out: str
    err: str


class KafkaTools:
    """The tools of a release, in a JVM that stays: they are run many times."""

    def __init__(self, process: "subprocess.Popen[str]", release: str) -> None:
        self.release = release
        self._in, self._out = _opened(process.stdin), _opened(process.stdout)
        assert self._out.readline() == "ready\n"

    def __call__(self, tool: str, *arguments: str) -> CommandResult:
        """What a tool, named by its class, does with these arguments."""
        self._in.write("\t".join((tool, *arguments)) + "\n")
        self._in.flush()
        code, out, err = self._out.readline().split()
        return CommandResult(int(code), _decoded(out), _decoded(err))

    def tool(self, name: str) -> "KafkaTool":
        """One of them."""
        return KafkaTool(partial(self, name), self.release)


@dataclass(frozen=True)
class KafkaTool:
    """A tool of a release."""

    run: Callable[..., CommandResult]
    release: str

    def __call__(self, *arguments: str) -> CommandResult:
        """What the tool does with these arguments."""
        return self.run(*arguments)


@contextmanager
def kafka_tools(release: str, cache: Cache, directory: Path) -> Iterator[KafkaTools]:
    """Runs the tools until the end of the block."""
    jars = cache.class_path(release, Jars.TOOLS)
    compile_java([_SOURCE], directory, cache, jars)
    command = java_command(
        [directory, *jars],
        "KafkaTools",
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
        yield KafkaTools(process, release)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


class OurCommand:
    """``featurewatch``, or a group of its commands, in this process as a user's shell runs it."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        group: str | None = "features",
    ) -> None:
        self._group = () if group is None else (group,)
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        # Logging is set up once a process.
        monkeypatch.setattr("featurewatch.cli.logs.set_up", lambda **_: None)

    def __call__(self, *arguments: str) -> CommandResult:
        """What the command does with these arguments."""
        self._monkeypatch.setattr(sys, "argv", ["featurewatch", *self._group, *arguments])
        self._capsys.readouterr()  # what the test printed, as where it fetches the tool's jars
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self._capsys.readouterr()
        code = ended.value.code
        return CommandResult(code if isinstance(code, int) else 0, out, err)

    def as_the_tool(self, *arguments: str) -> CommandResult:
        """The same without the lines of ours on stderr."""
        result = self(*arguments)
        lines = [line for line in result.err.splitlines(True) if not line.startswith(_OUR_LINE)]
        return CommandResult(result.code, result.out, "".join(lines))


def _opened(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _decoded(text: str) -> str:
    return base64.b64decode(text[1:]).decode()
