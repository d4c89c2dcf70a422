"""Builders of controller states for tests."""

from collections.abc import Mapping

from featurewatch.controller.kraft.releases import release_of
from featurewatch.controller.kraft.requests import LevelUpdate, UpdateDecision, UpdateRequest
from featurewatch.controller.kraft.state import (
    ControllerState,
    RegisteredBroker,
    RegisteredController,
)
from featurewatch.controller.kraft.updates import decide_update
from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    SupportedRanges,
    UpgradeType,
)

UP, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE

FOO = FeatureName("foo")
TV = FeatureName("transaction.version")
ELR = FeatureName("eligible.leader.replicas.version")


def broker(
    node: int, ranges: Mapping[FeatureName, tuple[int, int]], *, fenced: bool = False
) -> RegisteredBroker:
    """A registered broker."""
    return RegisteredBroker(NodeId(node), SupportedRanges(ranges), fenced=fenced)


def state(
    release: str,
    level: int,
    *brokers: RegisteredBroker,
    levels: Mapping[FeatureName, int] | None = None,
    local: Mapping[FeatureName, tuple[int, int]] | None = None,
    controllers: Mapping[int, Mapping[FeatureName, tuple[int, int]]] | None = None,
    quorum: tuple[int, ...] = (),
    cluster: str = "c",
) -> ControllerState:
    """Controller 1 of a release, at a level of metadata.version; brokers as given."""
    others = (levels or {}).items()
    return ControllerState(
        NodeId(1),
        SupportedRanges({**release_of(release).ranges(), **(local or {})}),
        {
            METADATA_VERSION: FeatureLevel(level),
            **{name: FeatureLevel(other) for name, other in others},
        },
        brokers,
        tuple(
            RegisteredController(NodeId(node), SupportedRanges(ranges))
            for node, ranges in (controllers or {}).items()
        ),
        tuple(NodeId(node) for node in quorum),
        cluster,
    )


def update(
    release: str,
    at: ControllerState,
    level: int,
    kind: UpgradeType = UP,
    feature: FeatureName = METADATA_VERSION,
) -> UpdateDecision:
    """The decision about a single feature."""
    update = LevelUpdate(feature, FeatureLevel(level), kind)
    return decide_update(release, at, UpdateRequest((update,)))


def reason(decision: UpdateDecision) -> str:
    """The text of the only refusal, without Kafka's prefix."""
    (text,) = decision.refusals
    return text.rpartition("feature had an error: ")[2]
