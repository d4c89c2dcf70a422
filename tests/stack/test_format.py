"""Kafka's storage tool as the stack runs it, and the files that it writes to a node's directory."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from featurewatch.common.private_files import write_private
from featurewatch.stack.java.class_archive import archive_options
from featurewatch.stack.java.jars import Cache, java_command
from featurewatch.stack.kafka.ids import random_id
from featurewatch.stack.kafka.server_properties import Addresses, format_properties, node_properties
from featurewatch.stack.kafka.specs import NEWEST_TESTED, ClusterSpec, NodeSpec, Roles
from featurewatch.streams.events import SnapshotChunk
from featurewatch.streams.kraft.snapshot import read_snapshot
from featurewatch.streams.types import ClusterId
from tests.plugins.nightly import nightly_but

pytestmark = pytest.mark.stack

LATEST_PRODUCTION = {"3.9.1": 21, "4.3.0": 30, "4.4.0": 33}
"""``MetadataVersion.LATEST_PRODUCTION`` of each release."""


@dataclass
class Formatter:
    """The storage tool of one release, and a node's unformatted directory."""

    release: str
    cache: Cache
    directory: Path
    cluster_id: str

    @property
    def data(self) -> Path:
        """The node's ``log.dirs``."""
        return self.directory / "data"

    @property
    def properties(self) -> Path:
        """The node's configuration file."""
        return self.directory / "server.properties"

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs ``kafka-storage format`` with these arguments."""
        command = java_command(
            self.cache.class_path(self.release),
            "kafka.tools.StorageTool",
            *("format", *arguments),
            heap_mb=128,
            options=archive_options(self.cache, self.release),
        )
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def format(self, *arguments: str) -> str:
        """Formats with these arguments beside the required ones; returns the tool's output."""
        needed = ("--config", str(self.properties), "--cluster-id", self.cluster_id)
        done = self.run(*needed, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def levels(self) -> dict[str, int]:
        """The levels in the snapshot that a format writes."""
        (path,) = self.data.rglob("*.checkpoint")
        assert (path.name == "bootstrap.checkpoint") == (self.release != "4.4.0")
        with path.open("rb") as file:
            (chunk,) = read_snapshot(file, ClusterId(self.cluster_id), path.name, seen_ms=1)
        assert isinstance(chunk, SnapshotChunk)
        return {
            record["data"]["name"]: record["data"]["featureLevel"]
            for record in chunk.records
            if record["type"] == "FEATURE_LEVEL_RECORD"
        }

    @property
    def meta(self) -> dict[str, str]:
        """The content of ``meta.properties``."""
        lines = (self.data / "meta.properties").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


@pytest.fixture(params=nightly_but({NEWEST_TESTED}, LATEST_PRODUCTION))
def formatter(request: pytest.FixtureRequest, stack_cache: Cache, tmp_path: Path) -> Formatter:
    """A controller's directory for each tested release."""
    tool = Formatter(request.param, stack_cache, tmp_path, random_id())
    node = NodeSpec(1, tool.release, Roles.CONTROLLER)
    addresses = {1: Addresses(broker=None, controller=9093)}
    tool.data.mkdir()
    write_private(
        tool.properties,
        format_properties(node_properties(ClusterSpec([node]), node, addresses, tool.data)),
    )
    return tool


def test_the_default_level_is_that_of_the_tools_release(formatter: Formatter) -> None:
    """Without a level the tool uses its own release's newest production level (M-26)."""
    formatter.format()
    assert formatter.levels["metadata.version"] == LATEST_PRODUCTION[formatter.release]


@pytest.mark.form("released")
def test_the_initial_level_is_stored_in_the_directory(formatter: Formatter) -> None:
    """The level is in a snapshot, ``bootstrap.checkpoint`` or from 4.4 on the metadata log's first
    one (M-27 as released; the KIP has it in meta.properties)."""
    output = formatter.format("--release-version", "3.7-IV4")
    assert "metadata.version 3.7-IV4" in output or "metadata.version 19" in output
    assert formatter.levels["metadata.version"] == 19
    assert formatter.meta["cluster.id"] == formatter.cluster_id
    assert formatter.meta["node.id"] == "1"
    assert not [key for key in formatter.meta if "metadata" in key]


@pytest.mark.form("released")
def test_the_arguments_of_format(formatter: Formatter) -> None:
    """Each argument works in its long and short form, the level as ``--release-version`` or ``-r``
    (M-25 as released)."""
    config, cluster_id = str(formatter.properties), formatter.cluster_id
    done = formatter.run("-c", config, "-t", cluster_id, "-r", "3.8")
    assert done.returncode == 0, done.stderr
    assert formatter.levels["metadata.version"] == 20
    before = formatter.meta
    repeated = formatter.run("-c", config, "-t", cluster_id)
    assert repeated.returncode != 0
    assert "already formatted" in repeated.stderr
    for ignore in ("-g", "--ignore-formatted"):
        assert formatter.run("-c", config, "-t", cluster_id, ignore).returncode == 0
    assert (formatter.meta, formatter.levels["metadata.version"]) == (before, 20)
    listed = formatter.run("-h").stdout
    for flag in ("--config", "--cluster-id", "--release-version", "--ignore-formatted"):
        assert flag in listed
    assert "--metadata-version" not in listed


@pytest.mark.form("released")
@pytest.mark.parametrize("missing", ["--config", "--cluster-id"])
def test_format_requires_configuration_and_cluster_id(formatter: Formatter, missing: str) -> None:
    """Configuration and cluster id have no default; nothing is formatted without them (M-25 as
    released)."""
    arguments = {"--config": str(formatter.properties), "--cluster-id": formatter.cluster_id}
    rest = [word for flag, value in arguments.items() if flag != missing for word in (flag, value)]
    done = formatter.run(*rest)
    assert done.returncode != 0
    assert missing in done.stderr
    assert list(formatter.data.iterdir()) == []
