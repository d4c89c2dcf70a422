"""Builds the requests that light nodes send."""

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from featurewatch.kafka import messages
from featurewatch.stack.process.ports import LOOPBACK

Ranges = Mapping[str, tuple[int, int]]
"""Supported ranges by feature, both ends inclusive."""

_UNUSED_PORT = 1
"""The port that light nodes advertise; nobody listens there."""

_CAUGHT_UP = 1 << 62
"""The metadata offset in heartbeats: a light broker has no log and never lags."""


def register_broker(
    broker_id: int,
    cluster_id: str,
    incarnation: uuid.UUID,
    ranges: Ranges,
    rack: str | None,
    log_dir: uuid.UUID,
) -> "messages.BrokerRegistrationRequestV4":
    """BrokerRegistration v4 (3.9 and newer)."""
    form = messages.BrokerRegistrationRequestV4
    return form(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=incarnation,
        rack=rack,
        log_dirs=(log_dir,),
        **_advertised(form, "PLAINTEXT", ranges),
    )


def heartbeat(
    broker_id: int, epoch: int, *, want_fence: bool = False, want_shut_down: bool = False
) -> "messages.BrokerHeartbeatRequestV1":
    """BrokerHeartbeat v1."""
    return messages.BrokerHeartbeatRequestV1(
        broker_id=broker_id,
        broker_epoch=epoch,
        current_metadata_offset=_CAUGHT_UP,
        want_fence=want_fence,
        want_shut_down=want_shut_down,
    )


def register_controller(
    controller_id: int, incarnation: uuid.UUID, ranges: Ranges
) -> "messages.ControllerRegistrationRequestV0":
    """ControllerRegistration v0 (KIP-919; metadata.version 15 and newer)."""
    form = messages.ControllerRegistrationRequestV0
    return form(
        controller_id=controller_id,
        incarnation_id=incarnation,
        zk_migration_ready=False,
        **_advertised(form, "CONTROLLER", ranges),
    )


def create_topic(name: str, partitions: int, replicas: int) -> "messages.CreateTopicsRequestV7":
    """CreateTopics v7; the controller assigns the replicas."""
    form = messages.CreateTopicsRequestV7
    topic = form.CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=(),
        configs=(),
    )
    return form(topics=(topic,))


def update_features(
    updates: Iterable[tuple[str, int, int]],
) -> "messages.UpdateFeaturesRequestV1":
    """UpdateFeatures v1 (3.3 and newer); an update is (feature, level, upgrade type)."""
    form = messages.UpdateFeaturesRequestV1
    return form(
        feature_updates=tuple(
            form.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
            for feature, level, kind in updates
        )
    )


def _advertised(form: Any, listener: str, ranges: Ranges) -> dict[str, Any]:
    """The listener and the features of a registration."""
    return {
        "listeners": (
            form.Listener(name=listener, host=LOOPBACK, port=_UNUSED_PORT, security_protocol=0),
        ),
        "features": tuple(
            form.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in ranges.items()
        ),
    }
