"""Events of one small cluster, for tests of the worker."""

import time
from dataclasses import replace
from typing import Any

from featurewatch.streams.events import (
    CommitKind,
    LogCommit,
    QuorumStatus,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.types import ClusterId
from tests.simulation import records as r

CLUSTER = ClusterId("agents-cluster-0000000")


def commit(offset: int, records: list[dict[str, Any]], cluster: ClusterId = CLUSTER) -> LogCommit:
    """A commit of records; ``offset`` is that of the first."""
    last_offset = offset + len(records) - 1
    now_ms = int(time.time() * 1000)
    return LogCommit(cluster, CommitKind.BATCH, offset, last_offset, 1, now_ms, records, {}, now_ms)


def levels(offset: int, finalized: dict[str, int], cluster: ClusterId = CLUSTER) -> LogCommit:
    """A commit that finalizes levels in one batch."""
    records = [
        {
            "offset": offset + number,
            "type": "FEATURE_LEVEL_RECORD",
            "version": 0,
            "data": {"name": name, "featureLevel": level},
        }
        for number, (name, level) in enumerate(finalized.items())
    ]
    return commit(offset, records, cluster)


def registration(
    offset: int, node: int, supported: tuple[int, int], cluster: ClusterId = CLUSTER
) -> LogCommit:
    """A commit that registers a broker with a range of metadata.version."""
    low, high = supported
    feature = {
        "name": "metadata.version",
        "minSupportedVersion": low,
        "maxSupportedVersion": high,
    }
    data = {
        "brokerId": node,
        "isMigratingZkBroker": False,
        "incarnationId": f"incarnation-{offset}",
        "brokerEpoch": offset,
        "endPoints": [],
        "features": [feature],
        "rack": None,
        "fenced": False,
        "inControlledShutdown": False,
        "logDirs": [],
    }
    record = {"offset": offset, "type": "REGISTER_BROKER_RECORD", "version": 3, "data": data}
    return commit(offset, [record], cluster)


def following(offset: int, cluster: ClusterId = CLUSTER) -> SourceStatus:
    """A status: the source has caught up to an offset."""
    return status(SourceState.FOLLOWING, offset, cluster)


def status(state: SourceState, offset: int, cluster: ClusterId = CLUSTER) -> SourceStatus:
    """A status of the source of the metadata log, which ends at an offset."""
    now_ms = int(time.time() * 1000)
    return SourceStatus(cluster, "kraft", state, offset, 1, offset + 1, 1, 1, "a detail", now_ms)


def quorum() -> QuorumStatus:
    """A voter that leads, and one that does not fetch."""
    voters = [replace(r.replica(1), lag=0), replace(r.replica(2, state="silent"), lag=3)]
    return replace(r.quorum(voters, seen_ms=1), cluster=CLUSTER)
