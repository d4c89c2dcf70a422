"""Fetch and FetchSnapshot on the wire, versions 13 to 18 and 0 to 1, for an observer without an id.

A Fetch that bears a voter's id counts as that voter's acknowledgement and can move the high
watermark over records that are not safe; one that bears any other id shows up in the quorum's
description. Therefore the replica id is -1 in every request, and no code here can change it.
"""

import uuid
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, Final, Protocol

from featurewatch.kafka.address import Address
from featurewatch.kafka.messages import Request, message_class
from featurewatch.streams.kraft.errors import NotAControllerError
from featurewatch.streams.kraft.observer.requests import (
    UNSUPPORTED_VERSION,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ObserverRequest,
    ObserverResponse,
)
from featurewatch.streams.types import NO_LEADER, LeaderAndEpoch, OffsetAndEpoch

NO_REPLICA: Final = -1
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = uuid.UUID(int=1)
PARTITION: Final = 0

FETCH_KEY: Final = 1
FETCH_SNAPSHOT_KEY: Final = 59
FETCH_VERSIONS: Final = (13, 18)
"""Below 13 topics go by name, which controllers refuse for the metadata log."""

FETCH_SNAPSHOT_VERSIONS: Final = (0, 1)

_REPLICA_STATE_FROM = 15
_WATERMARK_FROM = 18
"""Before: no such field. -1 is not "no such field" (the largest number is), but "not known"."""


class ApiVersionLookup(Protocol):
    """The node's API versions as far as a connection knows them."""

    def version_of(self, api_key: int, ours: tuple[int, int]) -> int | None:
        """The highest common version, if any."""


def encode_request(
    values: ObserverRequest, cluster_id: str | None, node: ApiVersionLookup
) -> tuple[Request[Any], Callable[[Any], ObserverResponse]]:
    """The wire request of ``values``, and the conversion of its response to an `ObserverResponse`.

    Raises `NotAControllerError` if the node offers no usable version.
    """
    snapshots = node.version_of(FETCH_SNAPSHOT_KEY, FETCH_SNAPSHOT_VERSIONS)
    fetches = node.version_of(FETCH_KEY, FETCH_VERSIONS)
    if snapshots is None:
        raise NotAControllerError(
            f"{values.to} is a broker's listener: give the address of a controller's"
        )
    if fetches is None:
        raise NotAControllerError(
            f"{values.to} is older than Kafka 3.3, which is the oldest that can be followed"
        )
    if isinstance(values, FetchRequest):
        request = fetch_request(values, cluster_id, fetches)
        return request, lambda response: decode_fetch(response, fetches)
    return snapshot_request(values, cluster_id, snapshots), decode_fetch_snapshot


def fetch_request(values: FetchRequest, cluster_id: str | None, version: int) -> Request[Any]:
    """A Fetch of the metadata log, outside any session, that waits for the first byte."""
    form = message_class("FetchRequest", version)
    watermark = {"high_watermark": values.high_watermark} if version >= _WATERMARK_FROM else {}
    replica = (
        {"replica_state": form.ReplicaState(replica_id=NO_REPLICA)}
        if version >= _REPLICA_STATE_FROM
        else {"replica_id": NO_REPLICA}
    )
    partition = form.FetchPartition(
        partition=PARTITION,
        current_leader_epoch=values.epoch,
        fetch_offset=values.position.offset,
        last_fetched_epoch=values.position.epoch,
        partition_max_bytes=values.max_bytes,
        **watermark,
    )
    request = form(
        cluster_id=cluster_id,
        max_wait_ms=values.max_wait_ms,
        min_bytes=1,
        max_bytes=values.max_bytes,
        topics=(form.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,)),),
        forgotten_topics_data=(),
        **replica,
    )
    return _checked_as_observer(request)


def snapshot_request(
    values: FetchSnapshotRequest, cluster_id: str | None, version: int
) -> Request[Any]:
    """A FetchSnapshot; it names the log by its name, unlike Fetch."""
    form = message_class("FetchSnapshotRequest", version)
    partition = form.PartitionSnapshot(
        partition=PARTITION,
        current_leader_epoch=values.epoch,
        snapshot_id=form.SnapshotId(end_offset=values.snapshot.offset, epoch=values.snapshot.epoch),
        position=values.position,
    )
    request = form(
        cluster_id=cluster_id,
        replica_id=NO_REPLICA,
        max_bytes=values.max_bytes,
        topics=(form.TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,)),),
    )
    return _checked_as_observer(request)


def decode_fetch(response: Any, version: int) -> FetchResponse:
    """Reads the part about the metadata log of a Fetch response of ``version``."""
    if response.error_code or not response.responses or not response.responses[0].partitions:
        return FetchResponse(response.error_code or UNSUPPORTED_VERSION, version)
    partition = response.responses[0].partitions[0]
    return FetchResponse(
        error=partition.error_code,
        version=version,
        leader=_leader(partition.current_leader),
        endpoints=_endpoints(getattr(response, "node_endpoints", ())),
        high_watermark=partition.high_watermark,
        log_start=partition.log_start_offset,
        diverging=_offset_and_epoch(partition.diverging_epoch),
        snapshot=_offset_and_epoch(partition.snapshot_id),
        records=partition.records or b"",
    )


def decode_fetch_snapshot(response: Any) -> FetchSnapshotResponse:
    """Reads the part about the metadata log of a FetchSnapshot response."""
    if response.error_code or not response.topics or not response.topics[0].partitions:
        return FetchSnapshotResponse(response.error_code or UNSUPPORTED_VERSION)
    partition = response.topics[0].partitions[0]
    return FetchSnapshotResponse(
        error=partition.error_code,
        leader=_leader(partition.current_leader),
        endpoints=_endpoints(getattr(response, "node_endpoints", ())),
        snapshot=_offset_and_epoch(partition.snapshot_id),
        size=partition.size,
        position=partition.position,
        data=partition.unaligned_records,
    )


def _leader(part: Any) -> LeaderAndEpoch:
    return (
        LeaderAndEpoch(part.leader_id, part.leader_epoch) if part.leader_epoch >= 0 else NO_LEADER
    )


def _offset_and_epoch(part: Any) -> OffsetAndEpoch | None:
    is_given = part.epoch >= 0 and part.end_offset >= 0
    return OffsetAndEpoch(part.end_offset, part.epoch) if is_given else None


def _endpoints(part: Iterable[Any]) -> MappingProxyType[int, Address]:
    return MappingProxyType({node.node_id: Address.of_peer(node.host, node.port) for node in part})


def _checked_as_observer(request: Any) -> Request[Any]:
    """Returns the request if it has no replica id; any other request must never be sent."""
    state = getattr(request, "replica_state", None)
    replica_id = request.replica_id if state is None else state.replica_id
    if replica_id != NO_REPLICA:
        raise AssertionError(f"a request of an observer has the replica id {replica_id}")
    payload: Request[Any] = request
    return payload
