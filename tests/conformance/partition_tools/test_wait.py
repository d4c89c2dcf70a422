"""``reassign execute --wait``: to the end, broken off, and killed."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from featurewatch.admin.cluster.configs import ConfigOwner
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.stack.kafka.cluster import Cluster
from tests.cli.commands import environment, featurewatch
from tests.conformance.partition_tools.running import fill, throttles_of
from tests.conformance.partition_tools.tools import make_topic, write_assignment
from tests.waiting import eventually

pytestmark = pytest.mark.stack

FILE = "--reassignment-json-file"
SLOW = ("--throttle", "1000")


def begun(directory: Path, where: tuple[str, ...], file: str) -> "subprocess.Popen[str]":
    """A command that waits for a throttled reassignment, which it has started."""
    command = ["reassign", "execute", *where, FILE, file, *SLOW, "--wait", "--yes"]
    process = subprocess.Popen(
        [sys.executable, "-m", "featurewatch", *command],
        env=environment(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines: Iterator[str] = iter(process.stdout)
    assert any(line.startswith("Successfully started") for line in lines)
    return process


def test_a_killed_reassignment_is_found_and_finished(quorum_430: Cluster, tmp_path: Path) -> None:
    """SIGTERM and Ctrl-C remove the throttles and say that the copy continues; kill -9 leaves
    them, verify finds the rest and waits, execute --additional --wait finishes it and removes
    them, and what another killed command left is found too (A-31)."""
    servers = quorum_430.bootstrap_servers
    where = ("--bootstrap-server", servers)
    names = ["terminated", "interrupted", "killed", "left-behind"]
    files = {}
    for name in names:
        make_topic(servers, name, [1])
        partition = TopicPartition(name, 0)
        files[name] = write_assignment(tmp_path / name, {partition: (2, 3)})

    def moved(name: str) -> bool:
        shown = featurewatch(tmp_path, "reassign", "verify", *where, FILE, files[name])
        return f"{name}-0 is completed" in shown.stdout

    for name, number, code in (
        ("terminated", signal.SIGTERM, 143),
        ("interrupted", signal.SIGINT, 130),
    ):
        fill(servers, name)
        process = begun(tmp_path, where, files[name])
        assert eventually(lambda: throttles_of(servers, name) != {}, 60)  # noqa: B023
        process.send_signal(number)
        _, printed = process.communicate(timeout=60)
        assert process.returncode == code, printed
        assert "continues without them" in printed or "removed" in printed
        assert eventually(lambda: throttles_of(servers, name) == {}, 60)  # noqa: B023
        assert eventually(lambda: moved(name), 120)  # noqa: B023

    fill(servers, "killed")
    process = begun(tmp_path, where, files["killed"])
    assert eventually(lambda: ConfigOwner.topic("killed") in throttles_of(servers, "killed"), 60)
    process.kill()
    process.communicate(timeout=60)
    shown = featurewatch(tmp_path, "reassign", "verify", *where, FILE, files["killed"])
    assert "killed-0 is still in progress" in shown.stdout
    assert throttles_of(servers, "killed") != {}
    again = featurewatch(tmp_path, "reassign", "execute", *where, FILE, files["killed"])
    assert again.returncode == 1
    assert again.stdout.startswith("Cannot execute because there is an existing")
    assert "being reassigned: killed-0" in again.stderr
    options = ("--additional", "--throttle", "100000000", "--wait", "--json")
    done = featurewatch(
        tmp_path, "reassign", "execute", *where, FILE, files["killed"], *options, timeout_s=120
    )
    assert done.returncode == 0, done.stderr
    assert '"status": "completed"' in done.stdout
    assert '"result_code": 1' in done.stdout
    assert eventually(lambda: throttles_of(servers, "killed") == {}, 60)

    # Of another reassignment that was done when its command was killed, only throttles are left.
    left = featurewatch(tmp_path, "reassign", "execute", *where, FILE, files["left-behind"], *SLOW)
    assert left.returncode == 0, left.stderr
    assert eventually(
        lambda: ConfigOwner.topic("left-behind") in throttles_of(servers, "left-behind"), 60
    )

    def is_idle() -> bool:
        listed = featurewatch(tmp_path, "reassign", "list", *where)
        return listed.stdout == "No partition reassignments found.\n"

    assert eventually(is_idle, 120)
    found = featurewatch(tmp_path, "reassign", "execute", *where, FILE, files["killed"], "--wait")
    assert found.returncode == 0, found.stderr
    assert "an earlier command left are removed: topics left-behind" in found.stderr
    assert eventually(lambda: throttles_of(servers, "left-behind") == {}, 60)


class Terminal:
    """A command whose input and stderr are a terminal."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        self.shown = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "featurewatch", *arguments],
            env={**environment(directory), "TERM": "xterm", "COLUMNS": "120"},
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=slave,
            text=True,
        )
        os.close(slave)

    def reply(self, answer: str) -> str:
        """Waits for the question and replies; returns stdout when the command has ended."""
        self._read_until(lambda: "Go on? [y/N]" in self.shown)
        os.write(self._master, f"{answer}\n".encode())
        self._read_until(lambda: self.process.poll() is not None)
        assert self.process.stdout is not None
        with self.process.stdout as pipe:
            return pipe.read()

    def _read_until(self, ended: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not ended():
            assert time.monotonic() < deadline, self.shown
            if select.select([self._master], [], [], 0.05)[0]:
                try:
                    self.shown += os.read(self._master, 1 << 16).decode(errors="replace")
                except OSError:  # the other end is closed
                    self.process.wait(60)


def test_a_person_confirms_and_watches(quorum_430: Cluster, tmp_path: Path) -> None:
    """At a terminal the plan is shown first; no sends nothing, yes continues, and a bar shows the
    bytes that are left."""
    servers, name = quorum_430.bootstrap_servers, "confirmed"
    make_topic(servers, name, [1])
    fill(servers, name)
    file = write_assignment(tmp_path / "file", {TopicPartition(name, 0): (2,)})
    line = ("reassign", "execute", "--bootstrap-server", servers, FILE, file, "--wait")
    refused = Terminal(tmp_path, *line)
    assert refused.reply("no") == ""
    assert refused.process.returncode == 1
    assert "1 partitions, 1 replicas to copy, 12," in refused.shown
    assert "nothing was sent" in refused.shown
    watched = Terminal(tmp_path, *line, "--throttle", "6000000")
    printed = watched.reply("y")
    assert watched.process.returncode == 0, watched.shown
    assert f"Reassignment of partition {name}-0 is completed." in printed
    assert "bytes left" in watched.shown
    assert "%" in watched.shown
