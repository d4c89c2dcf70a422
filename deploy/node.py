"""One Kafka node: a directory, two ports, and a process that comes and goes."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from deploy.archive import archive_options
from deploy.artifacts import Cache, java_command
from deploy.errors import StackError, StartError, WireError
from deploy.java import java
from deploy.log_tail import reason
from deploy.ports import LOOPBACK
from deploy.probe import live_brokers, quorum_leader
from deploy.process import Process
from deploy.properties import Addresses, text
from deploy.specs import NodeSpec

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
_POLL_S = 0.1


class Node:
    """A node of a `deploy.cluster.Cluster`.

    ``properties`` are those of the cluster for this node; ``spec.release`` is what it runs, or ran
    last. Its directory and its ports stay the same over restarts. ``java_options`` come last.
    """

    def __init__(
        self,
        spec: NodeSpec,
        addresses: Addresses,
        directory: Path,
        properties: Mapping[str, str],
        cache: Cache,
        heap_mb: int,
        *,
        temporary: bool,
        java_options: Sequence[str] = (),
    ) -> None:
        self.spec = spec
        self.addresses = addresses
        self.directory = directory
        self.log = directory / "server.log"
        self._properties = properties
        self._cache = cache
        self._heap_mb = heap_mb
        self._temporary = temporary
        self._java_options = java_options
        self._process: Process | None = None
        self._log_start = 0

    @property
    def id(self) -> int:
        """Kafka's ``node.id``."""
        return self.spec.id

    @property
    def release(self) -> str:
        """The release that it runs, or ran last."""
        return self.spec.release

    @property
    def broker(self) -> str | None:
        """``host:port`` of the listener for clients."""
        return _address(self.addresses.broker)

    @property
    def controller(self) -> str | None:
        """``host:port`` of the controller listener."""
        return _address(self.addresses.controller)

    @property
    def data(self) -> Path:
        """Kafka's ``log.dirs``."""
        return self.directory / "data"

    @property
    def metadata_log(self) -> Path:
        """The directory of the metadata log's segments and snapshots."""
        return self.data / "__cluster_metadata-0"

    @property
    def running(self) -> bool:
        """Whether the process lives (not: whether it is ready)."""
        return self._process is not None and self._process.exit_code is None

    @property
    def pid(self) -> int | None:
        """The JVM's process id while it runs."""
        return self._process.pid if self._process is not None and self.running else None

    def format(self, cluster_id: str, arguments: Sequence[str]) -> None:
        """Formats the data directory with the release's own storage tool; once, then nothing.

        Raises:
            StartError: if the tool refuses; with its reason.
        """
        if (self.data / "meta.properties").exists():
            return
        self.data.mkdir(parents=True, exist_ok=True)
        command = java_command(
            self._cache.class_path(self.release),
            "kafka.tools.StorageTool",
            *("format", "--cluster-id", cluster_id, "--config", str(self._write_properties())),
            *arguments,
            heap_mb=128,
            options=archive_options(self._cache, self.release),
        )
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise StartError(
                f"node {self.id} (Kafka {self.release}) could not be formatted: "
                + reason(done.stderr + done.stdout)
            )

    def start(
        self,
        release: str | None = None,
        *,
        wait: bool = True,
        timeout_s: float = START_TIMEOUT_S,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the node, on another release if one is given; its directory is kept.

        ``properties`` are added to the node's own for this and later starts. With ``wait`` it
        returns when the node takes part: its controller knows the quorum's leader and its broker
        is unfenced. A node that makes the majority cannot become ready alone: start it with
        ``wait=False``.

        Raises:
            StartError: if it runs already, ends, or is not ready in time; with the reason from its
                log.
        """
        if self.running:
            raise StartError(f"node {self.id} runs already; stop it first")
        if not (self.data / "meta.properties").exists():
            raise StartError(f"node {self.id} has no formatted directory; start its cluster first")
        if release is not None:
            self.spec = replace(self.spec, release=release)
        if properties is not None:
            self._properties = dict(self._properties) | dict(properties)
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        self._process = Process(
            self._command(), self.log, self.directory if self._temporary else None
        )
        if wait:
            self.wait_ready(timeout_s)

    def wait_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Returns when the node takes part in its cluster.

        Raises:
            StartError: if it ends or is not ready in time.
        """
        deadline = time.monotonic() + timeout_s
        while (missing := self.not_ready()) is not None:
            if self._process is None or (code := self._process.exit_code) is not None:
                ended = "is not running" if self._process is None else f"ended with code {code}"
                raise StartError(f"{self} {ended} before it was ready: {self._log_reason()}")
            if time.monotonic() > deadline:
                raise StartError(f"{self} is not ready after {timeout_s:.0f} s: {missing}")
            time.sleep(_POLL_S)

    def not_ready(self) -> str | None:
        """Why the node does not take part yet; None if it does. Asked over the wire."""
        try:
            if self.addresses.controller is not None:
                quorum_leader(LOOPBACK, self.addresses.controller)
            if self.addresses.broker is not None:
                live = live_brokers(LOOPBACK, self.addresses.broker)
                if self.id not in live:
                    return f"broker {self.id} is fenced"
        except WireError as error:
            return str(error)
        return None

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Asks it to shut down (SIGTERM), and kills it if it has not done so in time."""
        if self._process is None:
            return
        self._process.terminate()
        if self._process.wait(timeout_s) is None:
            self.kill()

    def ask_to_stop(self) -> None:
        """Sends SIGTERM and does not wait."""
        if self._process is not None:
            self._process.terminate()

    def kill(self) -> None:
        """Kills it (SIGKILL) and returns when it is gone.

        Raises:
            StackError: if the kernel does not let go of it in ten seconds.
        """
        if self._process is None:
            return
        self._process.kill()
        if self._process.wait(10.0) is None:
            raise StackError(f"{self} (pid {self._process.pid}) cannot be killed")

    def __str__(self) -> str:
        return f"node {self.id} (Kafka {self.release})"

    def _command(self) -> list[str]:
        logger = "-Dorg.slf4j.simpleLogger."
        return [
            str(java()),
            f"-Xmx{self._heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-Djava.net.preferIPv4Stack=true",
            *archive_options(self._cache, self.release),
            *self._java_options,
            f"{logger}showDateTime=true",
            f"{logger}dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
            "-cp",
            os.pathsep.join(map(str, self._cache.class_path(self.release))),
            "kafka.Kafka",
            str(self._write_properties()),
        ]

    def _write_properties(self) -> Path:
        path = self.directory / "server.properties"
        path.write_text(text(self._properties))
        return path

    def _log_reason(self) -> str:
        try:
            with self.log.open("rb") as log:
                log.seek(max(self._log_start, self.log.stat().st_size - (256 << 10)))
                found = reason(log.read().decode(errors="replace"))
        except OSError:
            found = "it left no log"
        return f"{found} (log: {self.log})"


def _address(port: int | None) -> str | None:
    return None if port is None else f"{LOOPBACK}:{port}"
