"""Builds the requests that light nodes send, as kio's messages."""

import datetime
import uuid
from collections.abc import Iterable, Mapping

from kio.schema.broker_heartbeat.v1.request import BrokerHeartbeatRequest
from kio.schema.broker_registration.v4 import request as broker
from kio.schema.controller_registration.v0 import request as controller
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.types import BrokerId, TopicName
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64, u16

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
) -> broker.BrokerRegistrationRequest:
    """BrokerRegistration v4 (3.9 and newer)."""
    listener = broker.Listener(
        name="PLAINTEXT", host=LOOPBACK, port=u16(_UNUSED_PORT), security_protocol=i16(0)
    )
    features = tuple(
        broker.Feature(name=name, min_supported_version=i16(low), max_supported_version=i16(high))
        for name, (low, high) in ranges.items()
    )
    return broker.BrokerRegistrationRequest(
        broker_id=BrokerId(broker_id),
        cluster_id=cluster_id,
        incarnation_id=incarnation,
        listeners=(listener,),
        features=features,
        rack=rack,
        log_dirs=(log_dir,),
    )


def heartbeat(
    broker_id: int, epoch: int, *, want_fence: bool = False, want_shut_down: bool = False
) -> BrokerHeartbeatRequest:
    """BrokerHeartbeat v1."""
    return BrokerHeartbeatRequest(
        broker_id=BrokerId(broker_id),
        broker_epoch=i64(epoch),
        current_metadata_offset=i64(_CAUGHT_UP),
        want_fence=want_fence,
        want_shut_down=want_shut_down,
    )


def register_controller(
    controller_id: int, incarnation: uuid.UUID, ranges: Ranges
) -> controller.ControllerRegistrationRequest:
    """ControllerRegistration v0 (KIP-919; metadata.version 15 and newer)."""
    listener = controller.Listener(
        name="CONTROLLER", host=LOOPBACK, port=u16(_UNUSED_PORT), security_protocol=i16(0)
    )
    features = tuple(
        controller.Feature(
            name=name, min_supported_version=i16(low), max_supported_version=i16(high)
        )
        for name, (low, high) in ranges.items()
    )
    return controller.ControllerRegistrationRequest(
        controller_id=i32(controller_id),
        incarnation_id=incarnation,
        zk_migration_ready=False,
        listeners=(listener,),
        features=features,
    )


def create_topic(name: str, partitions: int, replicas: int) -> CreateTopicsRequest:
    """CreateTopics v7; the controller assigns the replicas."""
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(replicas),
        assignments=(),
        configs=(),
    )
    return CreateTopicsRequest(
        topics=(topic,), timeout=i32Timedelta.parse(datetime.timedelta(seconds=60))
    )


def update_features(updates: Iterable[tuple[str, int, int]]) -> UpdateFeaturesRequest:
    """UpdateFeatures v1 (3.3 and newer); an update is (feature, level, upgrade type)."""
    return UpdateFeaturesRequest(
        feature_updates=tuple(
            FeatureUpdateKey(feature=feature, max_version_level=i16(level), upgrade_type=i8(kind))
            for feature, level, kind in updates
        )
    )
