"""Outputs as a worker publishes them, and their messages, for tests of the page."""

from collections.abc import Iterable
from dataclasses import replace
from hashlib import sha256
from typing import Any

from featurewatch.controller.kraft.releases import releases
from featurewatch.streams.codec.outputs import Output, encode_output, encode_state
from featurewatch.streams.outputs import (
    Alert,
    AlertState,
    CapabilityClass,
    ChangeKind,
    FeatureChange,
    Operation,
    OperationKind,
    OperationPhase,
    Severity,
    Snapshot,
)
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS, STATE
from featurewatch.streams.types import (
    METADATA_VERSION,
    ClusterId,
    FeatureLevel,
    NodeId,
    Role,
)
from featurewatch.web.model import FleetModel

NOW_MS = 1_790_000_000_000


def nodes_on(release: str, *ids: int, role: Role = Role.BROKER) -> CapabilityClass:
    """A class of nodes that run a release."""
    ranges = releases()[release].ranges()
    return CapabilityClass(role, ranges, True, tuple(NodeId(node) for node in ids), (), ())


def state_of(
    cluster: str = "a-cluster",
    *classes: CapabilityClass,
    level: int = 19,
    revision: int = 1,
    at_ms: int = NOW_MS,
    **others: Any,
) -> Snapshot:
    """A snapshot; by default of three brokers of 3.9 that are ready for a higher level."""
    made = Snapshot(
        cluster=ClusterId(cluster),
        epoch=revision,
        revision=revision,
        provenance={"offset": 1, "leader_epoch": 1, "append_ms": NOW_MS},
        ready=True,
        leader_id=1,
        leader_epoch=1,
        finalized={METADATA_VERSION: FeatureLevel(level)},
        classes=classes or (nodes_on("3.9", 1, 2, 3),),
        incompatible=(),
        sources={"kraft": "following"},
        digest="",
        at_ms=at_ms,
        authority="kraft",
    )
    made = replace(made, **others)
    return replace(made, digest=sha256(repr(replace(made, at_ms=0)).encode()).hexdigest())


def alert_of(cluster: str = "a-cluster", node: int = 1, **others: Any) -> Alert:
    """A critical alert that fires about a node."""
    made = Alert(
        id=f"{cluster}/incompatible-node/broker-{node}",
        cluster=ClusterId(cluster),
        rule="incompatible-node",
        severity=Severity.CRITICAL,
        state=AlertState.FIRING,
        subject={"role": "broker", "node": node},
        summary=f"Broker {node} must be upgraded.",
        evidence={},
        since_ms=NOW_MS,
        at_ms=NOW_MS,
        cause=f"{cluster}/kraft/1-1",
    )
    return replace(made, **others)


def change_of(cluster: str = "a-cluster", revision: int = 1, **others: Any) -> FeatureChange:
    """A level that was raised."""
    made = FeatureChange(
        cluster=ClusterId(cluster),
        feature=METADATA_VERSION,
        before=FeatureLevel(19),
        after=FeatureLevel(25),
        kind=ChangeKind.UPGRADED,
        epoch=revision,
        revision=revision,
        provenance={"offset": 1, "leader_epoch": 1, "append_ms": NOW_MS},
        from_snapshot=False,
        append_ms=NOW_MS,
        seen_ms=NOW_MS,
    )
    return replace(made, **others)


def operation_of(cluster: str = "a-cluster", offset: int = 100, **others: Any) -> Operation:
    """A topic that was created."""
    made = Operation(
        id=f"{cluster}/topic-creation/{offset}/completed/{offset}",
        cluster=ClusterId(cluster),
        operation=f"{cluster}/topic-creation/{offset}",
        kind=OperationKind.TOPIC_CREATION,
        phase=OperationPhase.COMPLETED,
        reason="",
        topic="orders",
        partition=-1,
        broker=-1,
        summary="Topic orders was created with 12 partitions, 3 replicas each",
        details={},
        offset=offset,
        leader_epoch=1,
        append_ms=NOW_MS,
        seen_ms=NOW_MS,
    )
    return replace(made, **others)


def publish_history(model: FleetModel, *outputs: Output) -> None:
    """Revisions and operations, after the topics were read to their end."""
    if not model.history.is_complete:
        model.history.begin_reading()
        model.history.end_reading()
    for output in outputs:
        topic = EPOCHS if isinstance(output, Snapshot) else OPERATIONS
        model.history.apply(topic.short_name, encode_output(output).value)


TopicMessage = tuple[str, bytes, bytes | None]


def message_of(output: Output) -> TopicMessage:
    """An output's topic (its short name), key and value; a snapshot's are those of ``state``."""
    if isinstance(output, Snapshot):
        encoded, topic = encode_state(output), STATE
    else:
        encoded = encode_output(output)
        topic = ALERTS if isinstance(output, Alert) else FEATURE_CHANGES
    return topic.short_name, encoded.key, encoded.value


def read_model(outputs: Iterable[Output] = (), now_ms: int = NOW_MS) -> FleetModel:
    """A model that has read its topics to the end."""
    model = FleetModel("boot")
    model.begin_reading()
    for output in outputs:
        model.apply(*message_of(output), now_ms)
    model.error = None
    model.end_reading(now_ms)
    return model
