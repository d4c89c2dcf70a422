"""An upgrade and a downgrade as a real controller wrote them, in the tables of a lake."""

from dataclasses import replace
from pathlib import Path

import pytest

from featurewatch.admin.features.client import FeatureUpdate, UpdateRefusedError, update_features
from featurewatch.controller.kraft import releases
from featurewatch.kafka.address import parse_addresses
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.gold.tables import (
    CAPABILITY_INTERVALS,
    FEATURE_CHANGES,
    INCOMPATIBILITIES,
    UPGRADES,
)
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.silver.tables import LEVELS, REGISTRATIONS
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.wire.light_nodes import LONG_SESSIONS, LightBroker, LightNodes
from featurewatch.streams.events import LogCommit
from featurewatch.streams.kraft.commits import CommitAssembler
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.types import METADATA_VERSION, ClusterId, FeatureLevel, UpgradeType
from tests.conftest import MakeCluster
from tests.pipeline.filling import rows
from tests.pipeline.gold.parity import (
    differences,
    folded,
    full_rows,
    gold,
    in_turn,
    into,
    tables_of,
)
from tests.simulation import records as r

LOW, HIGH, TOO_HIGH = FeatureLevel(11), FeatureLevel(12), FeatureLevel(22)
BROKERS = (11, 12)


async def real_log(make_cluster: MakeCluster) -> tuple[ClusterId, Path]:
    """The log of a controller with two brokers that went from 3.9 to 4.0 and back, with their
    levels; updates that came too early were refused."""
    node = NodeSpec(1, "4.3.0", Roles.CONTROLLER)
    cluster = make_cluster(ClusterSpec([node], "3.5-IV2", LONG_SESSIONS))
    (address,) = parse_addresses(cluster.controllers)

    async def update(level: FeatureLevel, kind: UpgradeType = UpgradeType.UPGRADE) -> None:
        await update_features(address, (FeatureUpdate(METADATA_VERSION, level, kind),))

    with LightNodes(cluster.controllers, cluster.cluster_id, 1) as light:
        brokers: dict[int, LightBroker] = {}

        def start(number: int, release: str) -> None:
            """A broker comes up; the incarnation stays, since its session has not ended."""
            before = brokers.get(number, LightBroker(number, {}))
            ranges = {str(name): bounds for name, bounds in releases()[release].ranges().items()}
            brokers[number] = replace(before, ranges=ranges)
            assert light.register([brokers[number]]) == []

        for number in BROKERS:
            start(number, "3.9")
        start(11, "4.0")
        with pytest.raises(UpdateRefusedError, match=r"Broker 12 only supports versions 1-21"):
            await update(TOO_HIGH)
        start(12, "4.0")
        await update(HIGH)
        with pytest.raises(UpdateRefusedError, match="downgrade"):
            await update(FeatureLevel(10), UpgradeType.SAFE_DOWNGRADE)
        await update(LOW, UpgradeType.SAFE_DOWNGRADE)
        for number in BROKERS:
            start(number, "3.9")
    (segment,) = cluster.node(1).metadata_log.glob("*.log")
    return ClusterId(cluster.cluster_id), segment


def commits(cluster: ClusterId, segment: Path) -> list[LogCommit]:
    """The log as the source publishes it."""
    assembler = CommitAssembler(cluster)
    events = []
    for batch in scan_batches(segment.read_bytes()).batches:
        for event in assembler.add(batch, batch.append_ms):
            assert isinstance(event, LogCommit)
            events.append(event)
    return events


def offset_of(cause: str) -> int:
    """The last offset of a cause."""
    return int(cause.rpartition("-")[2])


@pytest.mark.form("released")
@pytest.mark.stack
async def test_a_real_upgrade_and_downgrade(lake: Lake, make_cluster: MakeCluster) -> None:
    """The tables show the steps in the required order: an upgrade restarts every node, then raises
    the level once the controller finds that all support it (M-31); a downgrade lowers the level, as
    far as that is safe, then restarts every node on older software (M-32 as released). The log
    has each record in one version (M-69), and the lake equals the result of plain calls."""
    cluster, segment = await real_log(make_cluster)
    events = commits(cluster, segment)
    messages = in_turn([[*events, r.following(events[-1].last_offset)]])
    messages = [(topic, cluster.encode(), value) for topic, _, value in messages]
    for _ in into(lake, messages[:-1]):
        FoldQuery(lake).rebuild()
    assert differences(gold(lake), tables_of(folded(messages[:-1]))) == []

    down, up = full_rows(lake, UPGRADES)
    assert (up["direction"], up["state"]) == ("upgrade", "finalized")
    assert (up["from_releases"], up["to_releases"]) == (["3.9"], ["4.0"])
    assert up["levels"] == {METADATA_VERSION: [LOW, HIGH]}
    assert [node["node_id"] for node in up["nodes"]] == [*BROKERS]
    assert up["rollback_path"]["lossless"]
    first, last = (node["at_ms"] for node in up["nodes"])
    assert up["started_ms"] == first <= last == up["rolled_ms"] <= up["finalized_ms"]
    assert up["ended_ms"] == up["finalized_ms"] <= down["started_ms"]
    assert (down["direction"], down["state"]) == ("downgrade", "rolled")
    assert (down["from_releases"], down["to_releases"]) == (["4.0"], ["3.9"])
    assert down["levels"] == {METADATA_VERSION: [HIGH, LOW]}
    assert down["ended_ms"] == down["rolled_ms"] == down["nodes"][1]["at_ms"]

    columns = ("after", "provenance", "from_snapshot", "appended_at")
    changes = sorted(rows(lake, FEATURE_CHANGES, *columns), key=lambda row: row[1]["offset"])
    assert [(row[0], row[2]) for row in changes] == [(LOW, False), (HIGH, False), (LOW, False)]
    _, raised, lowered = (row[1]["offset"] for row in changes)
    starts: dict[str, list[int]] = {"3.9": [], "4.0": []}
    for row in full_rows(lake, CAPABILITY_INTERVALS):
        starts[row["release"]].append(offset_of(row["since_cause"]))
        assert (row["until_ms"] is None) == (offset_of(row["since_cause"]) > lowered)
    old, new = sorted(starts["3.9"]), sorted(starts["4.0"])
    assert max(old[:2]) < min(new) <= max(new) < raised < lowered < min(old[2:])
    assert rows(lake, INCOMPATIBILITIES) == []

    versions: dict[tuple[int, str], set[int]] = {}
    level, offsets = 0, []
    for event in events:
        for record in event.records:
            offsets.append(record["offset"])
            versions.setdefault((level, record["type"]), set()).add(record["version"])
            if record["data"].get("name") == METADATA_VERSION:
                level = record["data"]["featureLevel"]
    assert len(offsets) == len(set(offsets))
    assert {len(numbers) for numbers in versions.values()} == {1}
    for table, kind in (
        (LEVELS, "FEATURE_LEVEL_RECORD"),
        (REGISTRATIONS, "REGISTER_BROKER_RECORD"),
    ):
        expected = [
            record["offset"] for event in events for record in event.records
            if record["type"] == kind
        ]  # fmt: skip
        assert rows(lake, table, "log_offset") == sorted(
            ((offset,) for offset in expected), key=repr
        )
