"""Runs our Java programs against the jars of an installed Kafka.

``programs.jar`` has them compiled (``scripts/generate_programs.py``): users have no Java compiler.
"""

import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from featurewatch.stack.errors import ArtifactError, StartError
from featurewatch.stack.java.jars import java_command
from featurewatch.stack.learning.installed import InstalledKafka

PROGRAMS: Final = Path(__file__).with_name("programs.jar")
_TABLE_S: Final = 60.0
_MAX_OUTPUT: Final = 4 << 20
_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"


def feature_table(kafka: InstalledKafka) -> dict[str, Any]:
    """The levels, ranges and features of a release, as its own classes state them.

    Raises:
        ArtifactError: if the classes are not those of a Kafka that the program can read.
        JavaError: if no Java runtime is found.
    """
    command = java_command(
        [PROGRAMS, *kafka.read_class_path], "FeatureTable", heap_mb=64, options=[_QUIET]
    )
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_TABLE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise ArtifactError(
            f"Kafka {kafka.release}: its classes stated no levels within {_TABLE_S:.0f} s"
        ) from None
    if run.returncode or len(run.stdout) > _MAX_OUTPUT:
        raise ArtifactError(
            f"Kafka {kafka.release}: its classes do not state their levels in a way that this "
            f"version of featurewatch can read ({_error_of(run.stderr)})"
        )
    try:
        table: dict[str, Any] = json.loads(run.stdout)
    except ValueError:
        raise ArtifactError(f"Kafka {kafka.release}: its table of levels is not JSON") from None
    return table


def _error_of(stderr: str) -> str:
    """The innermost cause that Java printed, as one line."""
    lines = [line for line in stderr.splitlines() if line and not line.startswith("\t")]
    causes = [line for line in lines if line.startswith("Caused by: ")] or lines
    return " ".join((causes[-1] if causes else "no error was printed").split())[:200]


class ControllerProcess:
    """A JVM with a release's controller classes; ``java`` is the version of Java it runs on."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._in = _opened(process.stdin)
        self._out = _opened(process.stdout)
        line = self._line()
        try:
            self.java = int(line)
        except ValueError:
            raise StartError(f"the controller classes did not start: {line[:200]!r}") from None

    def responses(self, questions: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """An answer for each question, in order.

        Raises:
            StartError: if the process ends.
        """
        for question in questions:
            try:
                self._in.write(json.dumps(question) + "\n")
                self._in.flush()
            except OSError:
                self._line()  # raises the reason, if the process ended
                raise
            yield json.loads(self._line())

    def _line(self) -> str:
        line: str = self._out.readline()
        if not line:
            errors = self._process.stderr
            reason = f": {_error_of(errors.read(_MAX_OUTPUT))}" if errors else ""
            raise StartError(f"Java ended with {self._process.wait()}{reason}")
        return line


def _opened(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # noqa: S101 - both are opened below
    return pipe


@contextmanager
def controller_process(
    class_path: list[Path], main_class: str, *, is_quiet: bool = False
) -> Iterator[ControllerProcess]:
    """Runs a program that answers one question a line, until the block ends.

    ``is_quiet``: errors of Java are part of a `StartError` and not printed.

    Raises:
        JavaError: if no Java runtime is found.
        StartError: if the program does not start, such as where a class that it uses has changed.
    """
    command = java_command(class_path, main_class, heap_mb=256, options=[_QUIET])
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if is_quiet else None,  # Kafka's own log is off: it is short
        text=True,
        encoding="utf-8",
    )
    try:
        yield ControllerProcess(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


CONTROLLER: Final = "org.apache.kafka.controller.Harness"


@contextmanager
def installed_controller(kafka: InstalledKafka) -> Iterator[ControllerProcess]:
    """Runs the controller classes of an installed Kafka; raises as `controller_process`."""
    with controller_process([PROGRAMS, *kafka.class_path], CONTROLLER, is_quiet=True) as process:
        yield process
