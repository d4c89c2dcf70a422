"""Which voters report their supported kraft.version to the leader, which an upgrade of it needs.

While kraft.version is 0 the leader holds what each voter supports in memory only: since Kafka 4.1
every voter sends each new leader an ``UpdateRaftVoter`` request (KIP-853;
``KafkaRaftClient.shouldSendUpdateVoteRequest``, ``LeaderState.maybeAppendUpgradedKRaftVersion``).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from featurewatch.controller.kraft.releases import release_of
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    NodeId,
    SupportedRanges,
)

FIRST_REPORTING_RELEASE: Final = "4.1"
"""The first release whose voters report to the leader."""


def voters_not_reporting(
    voters: Iterable[NodeId],
    registered: Mapping[NodeId, SupportedRanges],
    level: FeatureLevel,
) -> tuple[NodeId, ...]:
    """The voters that do not report support for a level of kraft.version to the leader.

    By its registered ranges such a voter does not support the level, or its release does not
    report. Voters without a registration are left out.
    """
    newest = release_of(FIRST_REPORTING_RELEASE).newest(METADATA_VERSION)
    not_reporting = []
    for voter in voters:
        ranges = registered.get(voter)
        if ranges is None:
            continue
        reports = ranges.of(METADATA_VERSION).maximum >= newest
        if not (reports and ranges.of(KRAFT_VERSION).includes(level)):
            not_reporting.append(voter)
    return tuple(not_reporting)
