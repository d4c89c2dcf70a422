"""Builders of clusters that are being upgraded, for tests."""

from collections.abc import Mapping
from dataclasses import replace

from featurewatch.controller.kraft import release_of
from featurewatch.streams.events import Event, RecordJson
from featurewatch.streams.types import FeatureName, NodeId
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.log import Quorum
from tests.simulation import records as r
from tests.simulation.records import MV
from tests.tables.images import fold_all

VOTERS = (1, 2, 3)


def ranges(release: str) -> Mapping[FeatureName, tuple[int, int]]:
    """The supported ranges of a release's nodes."""
    return release_of(release).ranges()


def nodes(*releases: str, fenced: bool = False) -> list[RecordJson]:
    """Brokers 1, 2, … of these releases."""
    return [
        r.register(node, ranges(release), fenced=fenced, epoch=node)
        for node, release in enumerate(releases, start=1)
    ]


def controllers(*releases: str) -> list[RecordJson]:
    """Controllers 1, 2, … of these releases."""
    return [
        r.register_controller(node, ranges(release))
        for node, release in enumerate(releases, start=1)
    ]


def cluster(*records: RecordJson, level: int = 21, at: int = 50) -> list[Event]:
    """A complete log; controllers 1 to 3 are voters, and 1 is active."""
    return [
        r.commit(1, r.leader_change(1, VOTERS)),
        r.commit(at, r.level(MV, level), *records),
        r.following(at),
    ]


def image(*records: RecordJson, level: int = 21) -> ClusterImage:
    """The image of such a cluster."""
    return fold_all(cluster(*records, level=level))


def led_by(before: ClusterImage, leader: int) -> ClusterImage:
    """The same image with another active controller."""
    quorum = Quorum(leader, 2, tuple(NodeId(voter) for voter in VOTERS))
    return replace(before, log=replace(before.log, quorum=quorum))
