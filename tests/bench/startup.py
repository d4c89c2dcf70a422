"""``help_vs_typer``, ``command_help_vs_typer`` and ``state_vs_typer``: how soon a command is there.

The baseline is a process that imports Typer and Rich's tables, and does nothing with them.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import single_bus
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.outputs import CapabilityClass, Snapshot
from featurewatch.streams.topics import ALERTS, STATE
from featurewatch.streams.types import (
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    SupportedRange,
)
from tests.bench.turns import FEATUREWATCH, line, medians
from tests.cli.command_tree import command_paths

_TYPER: Final = (sys.executable, "-c", "import typer, rich.table")
_CLUSTERS: Final = 3
_FEATURE: Final = FeatureName("metadata.version")


def run() -> Iterator[dict[str, Any]]:
    """The help of the program, the slowest help of a command, and the state of a small bus."""
    yield from _help()
    with (
        tempfile.TemporaryDirectory(prefix="featurewatch-") as name,
        Cluster(single_bus(), Path(name) / "bus", temporary=True) as bus,
    ):
        settings = BusSettings(bus.bootstrap_servers, partitions=1, replication_factor=1)
        _publish(settings)
        state = (*FEATUREWATCH, "state", "--bus", bus.bootstrap_servers)
        took = medians({"state": state, "typer": _TYPER})
    ratio = took["state"] / took["typer"]
    yield line("state_vs_typer", took["state"], took["typer"], ratio, clusters=_CLUSTERS)


def _help() -> Iterator[dict[str, Any]]:
    took = medians({"help": (*FEATUREWATCH, "--help"), "typer": _TYPER})
    yield line("help_vs_typer", took["help"], took["typer"], took["help"] / took["typer"])
    helps = {" ".join(path): (*FEATUREWATCH, *path, "--help") for path in command_paths()}
    took = medians({**helps, "typer": _TYPER})
    baseline = took.pop("typer")
    slowest = max(took, key=lambda path: took[path])
    ratio = took[slowest] / baseline
    yield line("command_help_vs_typer", took[slowest], baseline, ratio, slowest=slowest)


def _publish(bus: BusSettings) -> None:
    """A snapshot of a few clusters."""
    ensure_topics(bus, (STATE, ALERTS))
    producer = Producer(bus.client())
    now_ms = int(time.time() * 1000)
    nodes = tuple(map(NodeId, range(1, 10)))
    snapshot = Snapshot(
        cluster=ClusterId("cluster"),
        epoch=1,
        revision=1,
        provenance={"offset": 1, "leader_epoch": 1, "append_ms": now_ms},
        ready=True,
        leader_id=1,
        leader_epoch=1,
        finalized={_FEATURE: FeatureLevel(19)},
        classes=(
            CapabilityClass(Role.BROKER, {_FEATURE: SupportedRange(1, 19)}, True, nodes, (), ()),
        ),
        incompatible=(),
        sources={"kraft": "following"},
        digest="0" * 64,
        at_ms=now_ms,
    )
    for number in range(_CLUSTERS):
        message = encode_output(replace(snapshot, cluster=ClusterId(f"cluster-{number}")))
        producer.produce(bus.topic(STATE), message.value, message.key)
    producer.flush()
