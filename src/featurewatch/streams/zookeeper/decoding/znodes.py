"""Decodes a znode by its path. Pure, and total: any bytes give a result.

The forms are those of ``kafka.zk.ZkData`` in Kafka 2.7 to 3.9, and those of both drafts of KIP-584.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.streams.codec.checks import (
    INT32,
    INT32_OR_NONE,
    OFFSET_OR_NONE,
    a_name,
    a_text,
    brief,
    list_of,
)
from featurewatch.streams.types import MAX_CLUSTER_ID_CHARS, FeatureName, NodeId, SupportedRange
from featurewatch.streams.znodes import (
    AdminTask,
    AdminZnode,
    BrokerZnode,
    ClusterIdZnode,
    ControllerEpochZnode,
    ControllerZnode,
    MigrationZnode,
    PartitionStateZnode,
    UnreadableZnode,
    ZnodeContent,
)
from featurewatch.streams.zookeeper import paths
from featurewatch.streams.zookeeper.decoding import features
from featurewatch.streams.zookeeper.decoding.fields import (
    INT64,
    ZnodeFormatError,
    a_list,
    an_object,
    json_object,
    optional,
    required,
    schema,
    time_ms,
)

_NUMBER: Final = re.compile(rb"[0-9]{1,10}")
_ENDPOINT: Final = re.compile(r"([^:/]+)://([^/]*:-?[0-9]{1,5})")
_PARTITION: Final = re.compile(rf"{paths.TOPICS}/([^/]+)/partitions/([0-9]{{1,10}})/state")


@dataclass(frozen=True, slots=True)
class DecodedZnode:
    """A znode's content, and one sentence about why it is invalid (None: it is valid).

    The error goes to the dead letters, with the bytes. The content is `UnreadableZnode`
    unless the rest of the znode is good all the same.
    """

    content: ZnodeContent
    error: str | None = None


def decode_znode(path: str, data: bytes) -> DecodedZnode:
    """The content of the znode at ``path`` (without the chroot); raises nothing."""
    decoder = _BY_PATH.get(path)
    try:
        if decoder is not None:
            return DecodedZnode(decoder(data))
        directory, _, name = path.rpartition("/")
        if directory == paths.BROKER_IDS:
            return _broker(name, data)
        if directory == paths.DELETE_TOPICS:
            return DecodedZnode(AdminZnode(AdminTask.DELETE, ({"topic": a_name(name)},)))
        if place := _PARTITION.fullmatch(path):
            return DecodedZnode(_partition_state(place[1], INT32(int(place[2])), data))
        raise ZnodeFormatError("the format of a znode at this path is not known")
    except ValueError as error:
        return DecodedZnode(UnreadableZnode(str(error)), str(error))


def _broker(name: str, data: bytes) -> DecodedZnode:
    """``/brokers/ids/<id>``, schema 1 to 5 (Kafka: ``BrokerIdZNode.decode``)."""
    if not re.fullmatch(r"[0-9]{1,10}", name):
        raise ZnodeFormatError(f"{brief(name)} is not a broker id")
    node_id = NodeId(INT32(int(name)))
    content = json_object(data)
    version = schema(content, 1, 5)
    supported = _supported(content)
    broker = BrokerZnode(
        node_id=node_id,
        schema=version,
        features=supported,
        addresses=_addresses(content, version),
        rack=optional(content, "rack", a_text, None),
        started_ms=time_ms(content.get("timestamp")),
    )
    reversed_ranges = [
        f"{brief(feature)} from {low} to {high}"
        for feature, (low, high) in supported.items()
        if low > high
    ]
    if not reversed_ranges:
        return DecodedZnode(broker)
    shown = ", ".join(reversed_ranges[:3]) + (", ..." if len(reversed_ranges) > 3 else "")
    return DecodedZnode(broker, f"it supports {shown}: the minimum is above the maximum")


def _addresses(content: dict[str, Any], version: int) -> dict[str, str]:
    if version == 1:
        host, port = required(content, "host", a_text), required(content, "port", INT64)
        return {"PLAINTEXT": f"{host}:{port}"}
    addresses = {}
    for endpoint in required(content, "endpoints", list_of(a_text)):
        match = _ENDPOINT.fullmatch(endpoint)
        if match is None:
            raise ZnodeFormatError(
                f"endpoints has an entry that is not LISTENER://host:port: {brief(endpoint)}"
            )
        addresses[match[1].upper()] = match[2]
    return addresses


def _supported(content: dict[str, Any]) -> dict[FeatureName, SupportedRange]:
    """Ranges as released Kafka writes them, or as the early draft of KIP-584 does."""
    ranges = {}
    features = {} if content.get("features") is None else content["features"]
    for name, value in an_object(features, "features").items():
        if not name:
            raise ZnodeFormatError("a feature has an empty name")
        entry = an_object(value, "the entry", name)
        early = "minVersion" in entry or "maxVersion" in entry
        low, high = ("minVersion", "maxVersion") if early else ("min_version", "max_version")
        ranges[FeatureName(name)] = SupportedRange(
            required(entry, low, INT64, name),
            required(entry, high, INT64, name),
        )
    return ranges


def _controller(data: bytes) -> ControllerZnode:
    content = json_object(data)
    schema(content, 1, 2)
    return ControllerZnode(
        node_id=NodeId(required(content, "brokerid", INT32)),
        kraft_epoch=optional(content, "kraftControllerEpoch", INT32_OR_NONE, -1),
        elected_ms=time_ms(content.get("timestamp")),
    )


def _controller_epoch(data: bytes) -> ControllerEpochZnode:
    if not _NUMBER.fullmatch(data):
        raise ZnodeFormatError(f"it is not a whole number: {brief(data)}")
    try:
        return ControllerEpochZnode(INT32(int(data)))
    except ValueError as error:
        raise ZnodeFormatError(f"it {error}") from None


def _cluster_id(data: bytes) -> ClusterIdZnode:
    content = json_object(data)
    if content.get("version") not in ("1", 1):
        version = brief(content.get("version"))
        raise ZnodeFormatError(f"its version is {version}; known is '1'")
    cluster = required(content, "id", a_name)
    if len(cluster) > MAX_CLUSTER_ID_CHARS or not cluster.isprintable():
        raise ZnodeFormatError(f"its id is invalid: {brief(cluster)}")
    return ClusterIdZnode(cluster)


def _migration(data: bytes) -> MigrationZnode:
    content = json_object(data)
    schema(content, 0, 0)
    return MigrationZnode(
        kraft_controller_id=NodeId(required(content, "kraft_controller_id", INT32_OR_NONE)),
        kraft_controller_epoch=required(content, "kraft_controller_epoch", INT32_OR_NONE),
        kraft_metadata_offset=required(content, "kraft_metadata_offset", OFFSET_OR_NONE),
        kraft_metadata_epoch=required(content, "kraft_metadata_epoch", INT32_OR_NONE),
    )


def _partition_state(topic: str, partition: int, data: bytes) -> PartitionStateZnode:
    content = json_object(data)
    schema(content, 1, 1)
    recovery = optional(content, "leader_recovery_state", INT32, 0)
    if recovery not in (0, 1):
        raise ZnodeFormatError(f"leader_recovery_state is neither 0 nor 1: {recovery}")
    return PartitionStateZnode(
        topic=topic,
        partition=partition,
        leader=NodeId(required(content, "leader", INT32_OR_NONE)),
        leader_epoch=required(content, "leader_epoch", INT32_OR_NONE),
        controller_epoch=required(content, "controller_epoch", INT32_OR_NONE),
        isr=required(content, "isr", list_of(INT32)),
        recovering=recovery == 1,
    )


def _task(task: AdminTask) -> Callable[[bytes], AdminZnode]:
    def read(data: bytes) -> AdminZnode:
        content = json_object(data)
        schema(content, 1, 1)
        features = a_list(required(content, "partitions", lambda value: value), "partitions")
        return AdminZnode(task, tuple(_partition(task, item) for item in features))

    return read


def _partition(task: AdminTask, item: Any) -> Mapping[str, Any]:
    content = an_object(item, "an entry of partitions")
    partition = {
        "topic": required(content, "topic", a_name),
        "partition": required(content, "partition", INT32),
    }
    if task is AdminTask.REASSIGN:
        partition["replicas"] = list(required(content, "replicas", list_of(INT32)))
    return partition


_BY_PATH: Final[Mapping[str, Callable[[bytes], ZnodeContent]]] = {
    paths.FEATURE: features.decode_released,
    paths.FEATURES: features.decode_draft,
    paths.CONTROLLER: _controller,
    paths.CONTROLLER_EPOCH: _controller_epoch,
    paths.CLUSTER_ID: _cluster_id,
    paths.MIGRATION: _migration,
    paths.REASSIGN_PARTITIONS: _task(AdminTask.REASSIGN),
    paths.PREFERRED_ELECTION: _task(AdminTask.ELECT),
}
