"""Levels in logs and snapshots: what a change of level does to records, and to what is read."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from featurewatch.admin.features.client import FeatureUpdate, update_features
from featurewatch.kafka.address import parse_addresses
from featurewatch.monitor.step import StepResult
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.wire.light_nodes import LONG_SESSIONS, LightBroker, LightNodes
from featurewatch.stack.wire.probe import supported_ranges
from featurewatch.streams.events import LogCommit, LogGap, SnapshotChunk
from featurewatch.streams.kraft.commits import CommitAssembler
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import Record
from featurewatch.streams.kraft.records.schema import record_table
from featurewatch.streams.kraft.snapshot import parse_name, read_snapshot
from featurewatch.streams.types import (
    METADATA_VERSION,
    NO_OFFSET,
    ClusterId,
    FeatureLevel,
    LastRecord,
    UpgradeType,
)
from featurewatch.tables.image.cluster import ClusterImage
from tests.conformance.dump_log import ours
from tests.conftest import MakeCluster
from tests.integration.kraft.support import until
from tests.simulation.engine import Engine
from tests.simulation.records import CLUSTER, MV
from tests.streams.kraft.encoding import batch_of, control_framed, data_batch, record_of

SNAPSHOT_FRAME = {"SNAPSHOT_HEADER", "SNAPSHOT_FOOTER"}

OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": "3000",
    "metadata.max.idle.interval.ms": "50",
}
"""A snapshot every few seconds of NoOps alone."""


def untagged(record: Record) -> Mapping[str, Any]:
    """A record's content without the tagged fields."""
    kinds = [*record_table().records.values(), *record_table().controls.values()]
    schema = next(kind for kind in kinds if kind.type == record["type"])
    tagged = {field.name for field in schema.fields if field.tagged}
    return {name: value for name, value in record["data"].items() if name not in tagged}


def state_of(snapshot: Path) -> list[Record]:
    """The records of a snapshot file without its frame, sorted."""
    records = [record for record in ours(snapshot) if record["type"] not in SNAPSHOT_FRAME]
    return sorted(
        records, key=lambda record: (record["type"], str(sorted(untagged(record).items())))
    )


async def snapshot_after(cluster: Cluster, offset: int) -> Path:
    """The first snapshot that a controller makes of a state with this offset in it."""

    def segments() -> list[Path]:
        files = cluster.node(1).metadata_log.glob("*.checkpoint")
        return sorted(file for file in files if parse_name(file.name)[0] > offset)

    await until(segments, 60)
    return segments()[0]


@pytest.mark.form("released")
@pytest.mark.stack
@pytest.mark.parametrize(
    ("release", "name", "before", "after"),
    [("3.9.1", "3.9-IV0", 21, 17), ("4.3.0", "4.2-IV1", 29, 23)],
)
async def test_a_lossless_downgrade(
    release: str, name: str, before: int, after: int, make_cluster: MakeCluster
) -> None:
    """It adds the record of the lower level and changes no other, and the snapshot made then holds
    that level (M-54 as released); formats before and after differ in tagged fields at most (M-55).
    Nothing is written again at the new level (M-62 as released).
    """
    node = NodeSpec(1, release, Roles.CONTROLLER)
    cluster = make_cluster(ClusterSpec([node], name, {**LONG_SESSIONS, **OFTEN}))
    (address,) = parse_addresses(cluster.controllers)
    ranges = supported_ranges(LOOPBACK, address.port)
    with LightNodes(cluster.controllers, cluster.cluster_id, 1) as light:
        assert light.register(LightBroker(number, ranges) for number in (11, 12, 13)) == []
        light.create_topic("a-topic", partitions=20, replicas=3)
    (segment,) = cluster.node(1).metadata_log.glob("*.log")
    higher = await snapshot_after(cluster, ours(segment)[-1]["offset"])
    written = segment.read_bytes()[: scan_batches(segment.read_bytes()).consumed]

    kind = UpgradeType.SAFE_DOWNGRADE
    await update_features(address, (FeatureUpdate(METADATA_VERSION, FeatureLevel(after), kind),))
    added = ours(segment)[len(ours_of(written)) :]
    assert segment.read_bytes().startswith(written)
    (level,) = [record for record in added if record["type"] != "NO_OP_RECORD"]
    assert level["data"] == {"name": METADATA_VERSION, "featureLevel": after}

    lower = await snapshot_after(cluster, level["offset"])
    records, two = state_of(higher), state_of(lower)
    changed = [
        pair for pair in zip(records, two, strict=True) if untagged(pair[0]) != untagged(pair[1])
    ]
    assert [(a["type"], a["data"], b["data"]["featureLevel"]) for a, b in changed] == [
        ("FEATURE_LEVEL_RECORD", {"name": METADATA_VERSION, "featureLevel": before}, after)
    ]
    assert [(a["type"], a["version"]) for a in records] == [(b["type"], b["version"]) for b in two]
    assert {record["type"] for record in two} >= {"PARTITION_RECORD", "REGISTER_BROKER_RECORD"}

    cluster_id = ClusterId(cluster.cluster_id)
    engine = Engine(cluster=cluster_id)
    for file in (higher, lower):
        with file.open("rb") as content:
            (chunk,) = read_snapshot(content, cluster_id, file.name, 1)
        assert isinstance(chunk, SnapshotChunk)
        outcome = engine.apply(chunk)
    assert [(c.before, c.after, c.from_snapshot) for c in outcome.changes] == [
        (before, after, True)
    ]


def ours_of(log: bytes) -> list[int]:
    """The offsets of a log's records."""
    batches = scan_batches(log).batches
    return [offset for b in batches for offset in range(b.base_offset, b.last_offset + 1)]


# -- snapshots around a change of level ------------------------------------------------------------
#
# KIP-778 has loaders write them; no request to a released controller leads to one now. A source's
# part in it is to read them right, whoever writes them.


def level(value: int) -> bytes:
    """A level of metadata.version."""
    return record_of("FEATURE_LEVEL_RECORD", {"name": MV, "featureLevel": value})


def registered(node_id: int, *, version: int, top: int, fenced: bool = True) -> bytes:
    """A broker's registration in one of the record's versions."""
    data: dict[str, Any] = {
        "brokerId": node_id,
        "isMigratingZkBroker": False,
        "incarnationId": "GHlH5OERRkutVAcVWWoDyA",
        "brokerEpoch": 1,
        "endPoints": [{"name": "A", "host": "h", "port": 9092, "securityProtocol": 0}],
        "features": [{"name": MV, "minSupportedVersion": 1, "maxSupportedVersion": top}],
        "rack": None,
        "fenced": fenced,
        "inControlledShutdown": False,
    }
    if version >= 3:
        data["logDirs"] = ["GHlH5OERRkutVAcVWWoDyA"]
    return record_of("REGISTER_BROKER_RECORD", data, version)


def controller(node_id: int, top: int) -> bytes:
    """A controller's registration, a record type that came with level 15."""
    data = {
        "controllerId": node_id,
        "incarnationId": "GHlH5OERRkutVAcVWWoDyA",
        "zkMigrationReady": False,
        "endPoints": [],
        "features": [{"name": MV, "minSupportedVersion": 1, "maxSupportedVersion": top}],
    }
    return record_of("REGISTER_CONTROLLER_RECORD", data)


def unfenced(node_id: int) -> bytes:
    """A broker is unfenced, as it was written below level 6."""
    return record_of("UNFENCE_BROKER_RECORD", {"id": node_id, "epoch": 1})


Read = LogCommit | SnapshotChunk | LogGap


def log(values: Sequence[bytes], first: int = 0, after: LastRecord = NO_OFFSET) -> list[Read]:
    """The events that a source reads from a log with one record a batch."""
    content = b"".join(data_batch([value], first + n) for n, value in enumerate(values))
    assembler = CommitAssembler(CLUSTER, position=after)
    events = [
        event
        for batch in scan_batches(content).batches
        for event in assembler.add(batch, seen_ms=1)
    ]
    return [event for event in events if isinstance(event, LogCommit)]


def snapshot(end: int, values: Sequence[bytes]) -> list[Read]:
    """The events that a source reads from a snapshot of the state before ``end``."""
    header = control_framed(3, {"version": 0, "lastContainedLogTimestamp": 1_700_000_000_000}, 0)
    footer = control_framed(4, {"version": 0}, 0)
    content = batch_of([header], 0, control=True) + data_batch(values, 1)
    content += batch_of([footer], 1 + len(values), control=True)
    name = f"{end:020}-{1:010}.checkpoint"
    outputs = list(read_snapshot(io.BytesIO(content), CLUSTER, name, seen_ms=1))
    return [output for output in outputs if isinstance(output, SnapshotChunk)]


def take(engine: Engine, events: Iterable[Read]) -> list[StepResult]:
    """The outputs for these events; nothing in them may be unreadable."""
    outcomes = [engine.apply(event) for event in events]
    assert dict(engine.state.image.sources.unreadable) == {}
    return outcomes


def nodes(engine: Engine) -> dict[str, Any]:
    """The state of each node, without its provenance."""
    registrations = engine.state.image.nodes.nodes
    nowhere = ClusterImage(CLUSTER).log.provenance
    return {str(key): node._replace(provenance=nowhere) for key, node in registrations.items()}


def changes(outcomes: Iterable[StepResult]) -> list[tuple[int, int, int, bool]]:
    """Each change of a level: before, after, at which offset, and whether found by comparing."""
    return [
        (change.before, change.after, change.epoch, change.from_snapshot)
        for outcome in outcomes
        for change in outcome.changes
    ]


BEFORE = [level(21), registered(1, version=3, top=21), registered(2, version=3, top=25)]
CHANGE = [level(25), registered(1, version=3, top=25)]


@pytest.mark.parametrize("known", [0, 2, 3])
def test_a_snapshot_right_before_the_change(known: int) -> None:
    """A snapshot that ends where the level changes, and the log after it, tell the change once and
    end where the log alone ends, whatever of it was known before.
    """
    end = len(BEFORE)
    alone = Engine()
    outcomes = take(alone, log([*BEFORE, *CHANGE]))
    assert changes(outcomes) == [(0, 21, 0, False), (21, 25, end, False)]

    jumped = Engine()
    outcomes = take(jumped, log(BEFORE[:known]))
    outcomes += take(jumped, snapshot(end, BEFORE))
    outcomes += take(jumped, log(CHANGE, end, LastRecord(end - 1, 1)))
    first = (0, 21, 0, False) if known else (0, 21, end - 1, True)
    assert changes(outcomes) == [first, (21, 25, end, False)]
    image, other = alone.state.image, jumped.state.image
    assert other.features.levels == image.features.levels
    assert other.log.provenance == image.log.provenance
    assert nodes(jumped) == nodes(alone)


def test_state_rewritten_at_the_new_level_is_the_same_state() -> None:
    """After 5 to 7 the content of a broker's two records is in one of a newer version: published
    as a snapshot, that changes nothing, and read alone it says the same.
    """
    lived, fresh = Engine(), Engine()
    take(lived, log([level(5), registered(1, version=0, top=7), unfenced(1)]))
    take(lived, log([level(7)], 3, LastRecord(2, 1)))
    rewritten = snapshot(9, [level(7), registered(1, version=1, top=7, fenced=False)])
    before = nodes(lived)
    (outcome,) = take(lived, rewritten)
    assert not outcome.delta.skipped
    assert (outcome.changes, outcome.alerts, outcome.snapshot) == ((), (), None)
    take(fresh, rewritten)
    assert nodes(lived) == nodes(fresh) == before
    assert lived.state.image.features.levels == fresh.state.image.features.levels


def test_the_snapshot_of_a_lossy_downgrade() -> None:
    """From 17 to 14: it has no registrations of controllers, a type that 14 does not know, and
    brokers without log directories. Read after the change, it takes the controllers out of
    what is known, leaves the brokers as they were, and tells no level twice.
    """
    engine = Engine()
    outcomes = take(
        engine,
        log([level(17), registered(1, version=3, top=19, fenced=False), controller(9, 19)]),
    )
    outcomes += take(engine, log([level(14)], 3, LastRecord(2, 1)))
    before = nodes(engine)
    assert set(before) == {"broker-1", "controller-9"}
    outcomes += take(
        engine, snapshot(9, [level(14), registered(1, version=2, top=19, fenced=False)])
    )
    assert changes(outcomes) == [(0, 17, 0, False), (17, 14, 3, False)]
    assert nodes(engine) == {"broker-1": before["broker-1"]}
