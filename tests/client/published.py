"""Messages as a worker publishes them, for tests of the client."""

from dataclasses import replace
from typing import Final

from featurewatch.client.fold import Record
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import encode_output, encode_state
from featurewatch.streams.outputs import (
    Alert,
    AlertState,
    ChangeKind,
    FeatureChange,
    Operation,
    OperationKind,
    OperationPhase,
    Severity,
    Snapshot,
)
from featurewatch.streams.topics import FEATURE_CHANGES, STATE
from featurewatch.streams.types import ClusterId, FeatureLevel, FeatureName

CLUSTER: Final = ClusterId("5L6g3nShT-eMCtK--X86sw")
FEATURE: Final = FeatureName("metadata.version")


def change(
    revision: int,
    after: int = 0,
    feature: str = FEATURE,
    cluster: str = CLUSTER,
    *,
    before: int = 0,
    seen_ms: int = 1,
) -> FeatureChange:
    """A change of a revision; ``after`` 0: the revision plus 20; ``before`` 0: one level less."""
    level = FeatureLevel(after or revision + 20)
    return FeatureChange(
        cluster=ClusterId(cluster),
        feature=FeatureName(feature),
        before=FeatureLevel(before or level - 1),
        after=level,
        kind=ChangeKind.UPGRADED,
        epoch=revision,
        revision=revision,
        provenance={"offset": revision, "leader_epoch": 1, "append_ms": 1},
        from_snapshot=False,
        append_ms=1,
        seen_ms=seen_ms,
    )


def removal(revision: int) -> FeatureChange:
    """The removal of the feature."""
    return replace(change(revision), kind=ChangeKind.REMOVED, after=FeatureLevel(0))


def snapshot(
    revision: int,
    levels: dict[str, int] | None = None,
    cluster: str = CLUSTER,
    *,
    ready: bool = True,
) -> Snapshot:
    """A state of a revision; without ``levels`` the feature is at the revision plus 20."""
    return Snapshot(
        cluster=ClusterId(cluster),
        epoch=revision,
        revision=revision,
        provenance={"offset": revision, "leader_epoch": 1, "append_ms": 1},
        ready=ready,
        leader_id=1,
        leader_epoch=1,
        finalized={
            FeatureName(name): FeatureLevel(level)
            for name, level in ({FEATURE: revision + 20} if levels is None else levels).items()
        },
        classes=(),
        incompatible=(),
        sources={"kraft": "following"},
        digest=f"{revision:x}",
        at_ms=revision,
        authority="kraft",
    )


def alert(number: int, state: AlertState = AlertState.FIRING) -> Alert:
    """An alert."""
    return Alert(
        id=f"{CLUSTER}/incompatible-node/node/broker-{number}",
        cluster=CLUSTER,
        rule="incompatible-node",
        severity=Severity.WARNING,
        state=state,
        subject={"node": number},
        summary="It does not support it.",
        evidence={},
        since_ms=1,
        at_ms=1,
        cause=f"cause-{number}",
    )


def operation(number: int) -> Operation:
    """A step of an operation."""
    return Operation(
        id=f"{CLUSTER}/election/{number}/completed/1",
        cluster=CLUSTER,
        operation=f"{CLUSTER}/election/{number}",
        kind=OperationKind.ELECTION,
        phase=OperationPhase.COMPLETED,
        reason="failure",
        topic="",
        partition=-1,
        broker=1,
        summary="Partitions have other leaders.",
        details={},
        offset=1,
        leader_epoch=1,
        append_ms=1,
        seen_ms=1,
    )


def record(message: Message, topic: str = FEATURE_CHANGES.name(), offset: int = 0) -> Record:
    """A message as a consumer gets it."""
    return Record(topic, 0, offset, message.key, message.value, message.headers)


def change_record(its_change: FeatureChange) -> Record:
    """The message of a change."""
    return record(encode_output(its_change))


def state_record(its_snapshot: Snapshot) -> Record:
    """The message of a snapshot on ``state``."""
    return record(encode_state(its_snapshot), STATE.name())


def deletion(cluster: str = CLUSTER) -> Record:
    """The message on ``state`` that a cluster was retired."""
    return Record(STATE.name(), 0, 0, cluster.encode(), None, [])
