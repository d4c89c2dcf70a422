"""A leader that sends what a test sets, and a log that begins after a snapshot of any size."""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta

from kio.schema.errors import ErrorCode
from kio.schema.fetch.v17 import response as fetch
from kio.schema.fetch_snapshot.v1 import response as fetch_snapshot
from kio.schema.types import BrokerId, TopicName
from kio.serial import entity_writer
from kio.static.primitive import Records, i32, i32Timedelta, i64
from kio.static.protocol import Entity

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.messages import FetchSnapshotRequestV1
from featurewatch.streams.kraft.observer.fetch_api import METADATA_TOPIC_ID
from featurewatch.streams.source_status import GracePeriods
from tests.streams.kraft.encoding import record_of

GRACE = GracePeriods(transient_ms=300, permanent_ms=100, lag_ms=300)
NO_TIME = i32Timedelta.parse(timedelta(0))
FETCH, FETCH_SNAPSHOT = 1, 59
APIS = b"".join(struct.pack(">hhhb", *api, 0) for api in ((1, 0, 17), (59, 0, 1), (18, 0, 4)))
HANDSHAKE = struct.pack(">h", 0) + b"\x04" + APIS + struct.pack(">i", 0) + b"\0"
LEVEL = record_of("FEATURE_LEVEL_RECORD", {"name": "metadata.version", "featureLevel": 21})


@dataclass
class HostileController:
    """A leader whose log begins after a snapshot of ``size`` bytes, of which ``part`` gives some.

    Without a size it has ``records``. ``raw`` replaces each answer after the handshake.
    """

    size: int | None = None
    part: Callable[[int], bytes] = lambda _: bytes(1 << 20)
    records: bytes = b""
    end: int = 1
    raw: bytes | None = None
    error: ErrorCode = ErrorCode.none
    """The error of each Fetch response as a whole."""
    grows: int = 0
    sent: int = 0
    asked: list[int] = field(default_factory=list)

    def answer(self, key: int, version: int, body: bytes) -> bytes:
        """The body that answers a request."""
        self.asked.append(key)
        if key == FETCH:
            return self.raw if self.raw is not None else b"\0" + _written(self._fetch())
        if key == FETCH_SNAPSHOT:
            return self.raw if self.raw is not None else b"\0" + _written(self._snapshot(body))
        return HANDSHAKE

    def _fetch(self) -> Entity:
        partition = fetch.PartitionData(
            partition_index=i32(0),
            error_code=ErrorCode.none,
            high_watermark=i64(self.end),
            last_stable_offset=i64(self.end),
            log_start_offset=i64(0),
            current_leader=fetch.LeaderIdAndEpoch(leader_id=BrokerId(1), leader_epoch=i32(1)),
            aborted_transactions=None,
            preferred_read_replica=BrokerId(-1),
            records=Records(self.records) if self.records else None,
        )
        if self.size is not None:
            snapshot = fetch.SnapshotId(end_offset=i64(100), epoch=i32(1))
            partition = replace(partition, snapshot_id=snapshot, log_start_offset=i64(100))
        topic = fetch.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=(partition,))
        response: Entity = fetch.FetchResponse(
            throttle_time=NO_TIME, error_code=self.error, session_id=i32(0), responses=(topic,)
        )
        return response

    def _snapshot(self, body: bytes) -> Entity:
        assert self.size is not None
        request, _ = read_entity(FetchSnapshotRequestV1, body, 1)
        position = int(request.topics[0].partitions[0].position)
        data = self.part(position)
        self.sent += len(data)
        self.size += self.grows
        partition = fetch_snapshot.PartitionSnapshot(
            index=i32(0),
            error_code=ErrorCode.none,
            snapshot_id=fetch_snapshot.SnapshotId(end_offset=i64(100), epoch=i32(1)),
            current_leader=fetch_snapshot.LeaderIdAndEpoch(
                leader_id=BrokerId(1), leader_epoch=i32(1)
            ),
            size=i64(self.size),
            position=i64(position),
            unaligned_records=Records(data),
        )
        topic = fetch_snapshot.TopicSnapshot(
            name=TopicName("__cluster_metadata"), partitions=(partition,)
        )
        response: Entity = fetch_snapshot.FetchSnapshotResponse(
            throttle_time=NO_TIME, error_code=ErrorCode.none, topics=(topic,)
        )
        return response


def _written(entity: Entity) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()
