"""One Kafka node: a directory, two ports, and a process that may stop and start."""

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from featurewatch.common.private_files import write_private
from featurewatch.stack.errors import StartError, WireError
from featurewatch.stack.java.class_archive import archive_options
from featurewatch.stack.java.jars import Cache, java_command
from featurewatch.stack.kafka.ids import random_id
from featurewatch.stack.kafka.server_properties import PROPERTIES_FILE, Addresses, format_properties
from featurewatch.stack.kafka.specs import NodeSpec, Roles
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.process.server import (
    START_TIMEOUT_S,
    Server,
    last_error_line,
    server_command,
)
from featurewatch.stack.wire.probe import live_brokers, quorum_leader
from featurewatch.stack.wire.znodes import wait_until_unregistered

_META: Final = "meta.properties"


class KafkaNode(Server):
    """A node of a `stack.kafka.cluster.Cluster`.

    ``properties`` are the cluster's for this node; ``spec.release`` is the release that it runs or
    ran last. The directory and the ports stay the same over restarts. ``java_options`` come last.
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
        super().__init__(directory, temporary=temporary)
        self.spec = spec
        self.addresses = addresses
        self._properties = properties
        self._added: Mapping[str, str] = {}
        self._cache = cache
        self._heap_mb = heap_mb
        self._java_options = java_options

    @property
    def id(self) -> int:
        """Kafka's ``node.id``."""
        return self.spec.id

    @property
    def release(self) -> str:
        """The release that the node runs, or ran last."""
        return self.spec.release

    @property
    def broker(self) -> str | None:
        """``host:port`` of the client listener; None for a controller."""
        return _address(self.addresses.broker)

    @property
    def controller(self) -> str | None:
        """``host:port`` of the controller listener; None for a broker."""
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
    def formatted(self) -> bool:
        """Whether the data directory belongs to a cluster."""
        return (self.data / _META).exists()

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster that the data directory belongs to; None until it is formatted."""
        if not self.formatted:
            return None
        text = (self.data / _META).read_text(encoding="latin-1")
        match = re.search("^cluster\\.id=(.*)$", text, re.MULTILINE)
        # Java escapes an equals sign, with which an id may end, by a backslash.
        return re.sub(r"\\(.)", r"\1", match[1]) if match else None

    def configure(self, spec: NodeSpec, properties: Mapping[str, str]) -> None:
        """Changes the node from its next start on; properties added by `start` stay."""
        self.spec = spec
        self._properties = properties

    def format(self, cluster_id: str, arguments: Sequence[str]) -> None:
        """Formats the data directory with the release's own storage tool, unless it is formatted.

        A broker in ZooKeeper mode formats its directory itself when it starts. ``arguments`` are
        passed to the tool.

        Raises:
            StartError: if the tool fails; with its reason.
        """
        if self.formatted or self.spec.roles is Roles.ZOOKEEPER:
            return
        self.data.mkdir(parents=True, exist_ok=True)
        command = java_command(
            self._cache.class_path(self.release),
            "kafka.tools.StorageTool",
            # As one argument: the id of a cluster in ZooKeeper mode may begin with a dash.
            *("format", f"--cluster-id={cluster_id}", "--config", str(self._write_properties())),
            *arguments,
            heap_mb=128,
            options=archive_options(self._cache, self.release),
        )
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise StartError(
                f"node {self.id} (Kafka {self.release}) could not be formatted: "
                + last_error_line(result.stderr + result.stdout)
            )

    def formats_as(self, other: "KafkaNode") -> bool:
        """Whether the storage tool, given the same arguments, writes the same files for both nodes,
        apart from their ids and the time."""
        is_same = replace(self.spec, id=other.id) == other.spec
        return is_same and self._is_plain and other._is_plain

    def copy_format(self, other: "KafkaNode") -> None:
        """Formats the data directory by a copy of that of a node that has not run yet and
        `formats_as` this one. A Java process per node would take most of a second each."""
        shutil.copytree(other.data, self.data, dirs_exist_ok=True)
        file = self.data / _META
        lines = file.read_text(encoding="latin-1").splitlines()
        own = {"node.id": str(self.id), "directory.id": random_id()}
        named = ((line, line.partition("=")[0]) for line in lines)
        lines = [f"{name}={own[name]}" if name in own else line for line, name in named]
        file.write_text("\n".join([*lines, ""]), encoding="latin-1")

    @property
    def _is_plain(self) -> bool:
        """Whether the storage tool formats the data directory and no other."""
        return (
            type(self) is KafkaNode
            and self.spec.roles is not Roles.ZOOKEEPER
            and self._properties["log.dirs"] == str(self.data)
            and "metadata.log.dir" not in self._properties
        )

    def start(
        self,
        release: str | None = None,
        *,
        wait: bool = True,
        timeout_s: float = START_TIMEOUT_S,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Starts the node, on ``release`` if it is given; the directory stays the same.

        ``properties`` are added to the node's own for this and later starts. With ``wait`` the
        method returns when the node is ready: its controller knows the quorum's leader and its
        broker is live. A node that completes a majority cannot become ready alone: start it with
        ``wait=False``.

        Raises:
            StartError: if it already runs, ends, or is not ready within ``timeout_s``; with the
                reason from its log.
            WireError: if it is in ZooKeeper mode and ZooKeeper does not respond.
        """
        self.require_stopped()
        if release is not None:
            self.spec = replace(self.spec, release=release)
        if properties is not None:
            self._added = dict(self._added) | dict(properties)
        if self.spec.roles is Roles.ZOOKEEPER:
            self.directory.mkdir(parents=True, exist_ok=True)
            wait_until_unregistered(self._properties["zookeeper.connect"], self.id)
        elif not self.formatted:
            raise StartError(f"node {self.id} has no formatted directory; start its cluster first")
        self._launch(self._command())
        if wait:
            self.wait_ready(timeout_s)

    def not_ready_reason(self) -> str | None:
        """Why the node is not ready yet; None if it is. Sends requests over the wire."""
        try:
            if self.addresses.controller is not None:
                quorum_leader(LOOPBACK, self.addresses.controller)
            if self.addresses.broker is not None:
                live = live_brokers(LOOPBACK, self.addresses.broker)
                if self.id not in live:
                    return f"broker {self.id} is not in its cluster's list of live brokers"
        except WireError as error:
            return str(error)
        return None

    def __str__(self) -> str:
        return f"node {self.id} (Kafka {self.release})"

    def _command(self) -> list[str]:
        return server_command(
            self._cache.class_path(self.release),
            "kafka.Kafka",
            str(self._write_properties()),
            heap_mb=self._heap_mb,
            options=[*archive_options(self._cache, self.release), *self._java_options],
        )

    def _write_properties(self) -> Path:
        path = self.directory / PROPERTIES_FILE
        write_private(path, format_properties(dict(self._properties) | dict(self._added)))
        return path


def _address(port: int | None) -> str | None:
    return None if port is None else f"{LOOPBACK}:{port}"
