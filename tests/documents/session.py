"""A reader of the documents at a shell: runs command lines as they are written.

Only names are replaced: addresses, ids, paths and ports that a reader replaces too.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tests.cli.commands import environment
from tests.documents.blocks import Command
from tests.waiting import eventually

TIMEOUT_S: Final = 300.0
_END_S: Final = 60.0

ENDLESS: Final = {
    r"featurewatch up\b": r"http://",
    r"featurewatch web\b": r"http://",
    r"featurewatch state --follow": r"metadata\.version",
    r"featurewatch operations --follow": r"topic-creation completed",
    r"featurewatch notify --config [^-]+$": r"notif",
    r"featurewatch pipeline run(?!.*--once)": r"first batch|bronze",
    r"curl -N": r"^event: ",
    r"python -m featurewatch\.reference\.zookeeper": r"^ready$",
}
"""Commands that run until Ctrl-C, and what they print once they work."""
KEPT: Final = r"featurewatch (?:up|web|notify)\b"
"""Those that go with the lines after them; each other one is ended once it works."""

UNDO: Final = "featurewatch stack down"
"""Pages write it after each stack that they start."""

_VARIES: Final = (
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z?)?(?: UTC)?"), "TIME"),
    (re.compile(r"(?<![\w-])[\w-]{22}(?![\w-])"), "ID"),
    (re.compile(r"\b(?:127\.0\.0\.1|localhost|[\w-]+-\d):\d+"), "HOST:PORT"),
    (re.compile(r"\boffset \d+"), "offset N"),
    (re.compile(r"^Controller: \d+$", re.MULTILINE), "Controller: N"),
)
"""What differs from run to run, and from cluster to cluster."""


@dataclass
class Session:
    """A shell in ``directory``, where ``names`` stand for those of the documents."""

    directory: Path
    names: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    running: dict[str, "subprocess.Popen[str]"] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._bin = self.directory / "bin"
        self._bin.mkdir(parents=True, exist_ok=True)
        self.program("featurewatch", sys.executable, "-m", "featurewatch")
        self.program("python", sys.executable)

    def program(self, name: str, *command: str) -> None:
        """Has a program on the PATH."""
        words = " ".join(f"'{word}'" for word in command)
        file = self._bin / name
        file.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        file.chmod(0o755)

    def child(self) -> "Session":
        """Returns a shell in the same directory, whose names and processes are its own."""
        return replace(self, names={**self.names}, variables={**self.variables}, running={})

    def again(self, command: Command) -> str:
        """As `run`, of a line that ran before, too."""
        self.done.discard(self.named(command.text))
        return self.run(command)

    def with_paths(self, text: str) -> str:
        """Returns what a page shows, with this session's paths; other names vary anyway."""
        for name, own in self.names.items():
            text = text.replace(name, own) if name.startswith("/") else text
        return text

    def named(self, text: str) -> str:
        """Returns a command line with this session's names."""
        longest_first = sorted(self.names, key=len, reverse=True)
        if not longest_first:
            return text
        pattern = "|".join(rf"(?<![\w.]){re.escape(name)}(?![\w])" for name in longest_first)
        return re.sub(pattern, lambda match: self.names[match[0]], text)

    def run(self, command: Command, codes: frozenset[int] = frozenset({0})) -> str:
        """Runs a command line to its end, or until it works; returns what it printed.

        A line that ran before is not run again, unless it undoes what another one did.
        """
        line = self.named(command.text)
        if line in self.done and not line.startswith(UNDO):
            return ""
        for pattern, works in ENDLESS.items():
            if re.match(pattern, command.text):
                printed = self._begin(line, works)
                self.done.add(line)
                if not re.match(KEPT, command.text):
                    self._end(line)
                return printed
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.directory,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode in codes, f"{line}\n{done.returncode}: {done.stdout}{done.stderr}"
        self.done.add(line)
        if found := re.search(r"^zookeeper   ([^/\s]+)", done.stdout, re.MULTILINE):
            self.names = {**self.names, "127.0.0.1:15821": found[1]}
        return done.stdout

    def _begin(self, line: str, works: str) -> str:
        log = self.directory / f"endless-{len(self.done)}.log"
        with log.open("w") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=self.directory,
                env=self._environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )
        self.running[line] = process
        found = re.compile(works, re.MULTILINE)
        ended = process.poll
        assert eventually(
            lambda: bool(found.search(log.read_text())) or ended() is not None, TIMEOUT_S
        ), line
        assert found.search(log.read_text()), f"{line}\n{ended()}: {log.read_text()}"
        return log.read_text()

    def _environment(self) -> dict[str, str]:
        bare = environment(self.directory, **self.variables)
        return {**bare, "PATH": f"{self._bin}:{os.environ['PATH']}", "COLUMNS": "200"}

    def close(self) -> None:
        """Ends what runs, the newest first, as Ctrl-C does; each must end well."""
        for line in [*reversed(self.running)]:
            self._end(line)

    def _end(self, line: str) -> None:
        process = self.running[line]
        process.send_signal(signal.SIGINT)
        code = process.wait(_END_S)
        del self.running[line]
        assert code in (0, 130, -signal.SIGINT), f"{line}\nended with {code}"

    def kill(self) -> None:
        """Ends what still runs, if the tests failed."""
        for process in self.running.values():
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()


def assert_shown(shown: str, printed: str) -> None:
    """Fails unless a command printed what the page shows.

    Times, ids, addresses, offsets and the space between words may differ; ``…`` stands for any part
    of a line, and alone on a line for any lines.
    """
    for pattern, name in _VARIES:
        shown, printed = pattern.sub(name, shown), pattern.sub(name, printed)
    lines = (
        r"\s+".join(map(re.escape, line.split())) for line in shown.splitlines() if line.strip()
    )
    parts = ("(?s:.*)" if line == "…" else line.replace("…", ".*") for line in lines)
    matches = re.fullmatch(r"\s*".join(parts), printed.strip())
    assert matches, f"shown:\n{shown}\nprinted:\n{printed}"
