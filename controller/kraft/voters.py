"""What voters tell their leader, on which a raise of kraft.version depends.

While kraft.version is 0 the leader keeps what each voter supports in memory alone: every voter
tells each new leader anew, by an ``UpdateRaftVoter`` request, since Kafka 4.1 (KIP-853;
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
"""The release."""


def voters_not_reporting(
    voters: Iterable[NodeId],
    registered: Mapping[NodeId, SupportedRanges],
    level: FeatureLevel,
) -> tuple[NodeId, ...]:
    """The voters whose registered ranges show that no leader hears from them that they support a
    level of kraft.version: they do not, or their release does not tell.

    Of a voter that has not registered nothing is known, and it is not among them.
    """
    newest = release_of(FIRST_REPORTING_RELEASE).newest(METADATA_VERSION)
    found = []
    for voter in voters:
        ranges = registered.get(voter)
        if ranges is None:
            continue
        reports = ranges.of(METADATA_VERSION).maximum >= newest
        if not (reports and ranges.of(KRAFT_VERSION).includes(level)):
            found.append(voter)
    return tuple(found)
