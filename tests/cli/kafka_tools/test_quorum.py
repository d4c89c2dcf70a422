"""The texts of ``kafka-metadata-quorum`` for literal descriptions."""

from dataclasses import replace
from uuid import UUID

import pytest

from featurewatch.cli.config.cluster_options import Compat
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.quorum import (
    added,
    removed,
    replication_lines,
    status_lines,
)
from featurewatch.streams.quorum import QuorumDescription, QuorumReplica, VoterEndpoint
from featurewatch.streams.types import ClusterId, FeatureLevel, NodeId

NOW = 1_800_000_000_000
FIRST, SECOND = UUID(int=1), UUID(int=2)
DYNAMIC = QuorumDescription(
    leader_id=NodeId(3000),
    leader_epoch=12,
    high_watermark=99,
    voters=(
        QuorumReplica(NodeId(2), FIRST, 95, NOW - 500, NOW - 1500),
        QuorumReplica(NodeId(3000), SECOND, 100, NOW, NOW),
    ),
    observers=(QuorumReplica(NodeId(4), None, 0, None, None),),
    endpoints={
        NodeId(2): (VoterEndpoint("CONTROLLER", "::1", 9093), VoterEndpoint("OTHER", "h", 1))
    },
    kraft_version=FeatureLevel(1),
    cluster_id=ClusterId("cluster"),
)

STATUS = """\
ClusterId:              cluster
LeaderId:               3000
LeaderEpoch:            12
HighWatermark:          99
MaxFollowerLag:         5
MaxFollowerLagTimeMs:   1500
CurrentVoters:          [{"id": 2, "directoryId": "AAAAAAAAAAAAAAAAAAAAAQ", "endpoints": \
["CONTROLLER://[::1]:9093", "OTHER://h:1"]}, {"id": 3000, "directoryId": "AAAAAAAAAAAAAAAAAAAAAg"}]
CurrentObservers:       [{"id": 4%s}]
"""


@pytest.mark.parametrize(
    ("compat", "without_id"), [(Compat.V3_9, ', "directoryId": null'), (Compat.V4_3, "")]
)
def test_status(compat: Compat, without_id: str) -> None:
    """3.9 prints null where there is no directory id, later ones nothing."""
    lines = "".join(f"{line}\n" for line in status_lines(DYNAMIC, compat))
    assert lines == STATUS % without_id


def test_replication() -> None:
    """The leader first, then voters and observers in their order; columns end in a tab."""
    assert [line.replace("\t", "|") for line in replication_lines(DYNAMIC)] == [
        "NodeId|DirectoryId           |LogEndOffset|Lag|LastFetchTimestamp|LastCaughtUpTimestamp"
        "|Status  |",
        "3000  |AAAAAAAAAAAAAAAAAAAAAg|100         |0  |1800000000000     |1800000000000        "
        "|Leader  |",
        "2     |AAAAAAAAAAAAAAAAAAAAAQ|95          |5  |1799999999500     |1799999998500        "
        "|Follower|",
        "4     |AAAAAAAAAAAAAAAAAAAAAA|0           |100|-1                |-1                   "
        "|Observer|",
    ]


def test_ages_and_a_clock_that_is_behind() -> None:
    """Ages are by this machine's clock; a time in its future is the tool's error."""
    leader = next(line for line in replication_lines(DYNAMIC, NOW / 1000 + 2) if "Leader" in line)
    assert leader.split("\t")[4].strip() == "2000 ms ago"
    with pytest.raises(KafkaToolError) as raised:
        list(replication_lines(DYNAMIC, NOW / 1000 - 1))
    assert raised.value.text == (
        "Error while computing relative time, possible drift in system clock.\n"
        "Current timestamp is 1799999999000, last fetch timestamp is 1800000000000"
    )


def test_a_leader_that_is_no_voter() -> None:
    """It was removed, and has not resigned yet."""
    without = replace(DYNAMIC, voters=DYNAMIC.voters[:1])
    with pytest.raises(KafkaToolError, match="No value present"):
        list(status_lines(without, Compat.V4_3))
    with pytest.raises(KafkaToolError, match="No value present"):
        list(replication_lines(without))


def test_changes() -> None:
    """The line of a removal has two spaces."""
    endpoints = DYNAMIC.endpoints[NodeId(2)]
    assert added(2, "D", endpoints, dry_run=True) == (
        "DRY RUN of adding controller 2 with directory id D and endpoints: "
        "CONTROLLER://[::1]:9093, OTHER://h:1"
    )
    assert added(2, "D", (), dry_run=False).startswith("Added controller 2 with")
    assert removed(2, "D", dry_run=False) == "Removed  KRaft controller 2 with directory id D"
    assert removed(2, "D", dry_run=True).startswith("DRY RUN of removing  KRaft controller 2")
