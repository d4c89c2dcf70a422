"""The comparison finds every planted difference, and nothing without one."""

import json
import struct
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from featurewatch.kafka.messages import message_class
from featurewatch.reference.zookeeper.wire.messages.topic_ids import topic_id_text
from tests.conformance.whole_controller.compare import (
    Json,
    Names,
    Observation,
    differences,
    request_json,
    write_json,
)
from tests.conformance.whole_controller.znode_log import ZnodeLog, ZnodeWrite

FENCE = ("/controller_epoch",)
STATE = "/brokers/topics/t/partitions/{}/state"


def state_write(number: int, leader_epoch: int, **changes: Any) -> ZnodeWrite:
    """A write of a partition's state."""
    content = {"version": 1, "controller_epoch": 3, "leader_epoch": leader_epoch, "isr": [1, 2]}
    data = json.dumps(content | changes).encode()
    return ZnodeWrite(5, "set", STATE.format(number), data, leader_epoch, FENCE)


def observed(first_epoch: int = 3, topic_id: int = 9, broker_epoch: int = 70) -> Observation:
    """A step of one run, with the given numbers."""
    names = Names(first_epoch, {broker_epoch: "registration 1"}, {broker_epoch + 1: 101})
    topic = {
        "version": 3,
        "partitions": {"0": [1, 2]},
        "topic_id": topic_id_text(UUID(int=topic_id)),
    }
    writes = [
        ZnodeWrite(5, "create", "/brokers/topics/t", json.dumps(topic).encode()),
        state_write(0, 1, controller_epoch=first_epoch),
        state_write(1, 1, controller_epoch=first_epoch),
        state_write(0, 2, controller_epoch=first_epoch),
        ZnodeWrite(5, "delete", "/admin/delete_topics/u", checked=FENCE),
    ]
    kind = message_class("StopReplicaRequest", 4)
    stop = kind(
        controller_id=1,
        is_kraft_controller=False,
        controller_epoch=first_epoch,
        broker_epoch=broker_epoch,
        topic_states=(
            kind.StopReplicaTopicState(
                topic_name="t",
                partition_states=tuple(
                    kind.StopReplicaPartitionState(
                        partition_index=number, leader_epoch=2, delete_partition=False
                    )
                    for number in (1, 0)
                ),
            ),
        ),
    )
    metadata_class = message_class("UpdateMetadataRequest", 8)
    endpoint = metadata_class.UpdateMetadataEndpoint(
        port=broker_epoch + 1, host="h", listener="PLAINTEXT", security_protocol=0
    )
    broker = metadata_class.UpdateMetadataBroker(id=101, endpoints=(endpoint,), rack=None)
    metadata = metadata_class(
        controller_id=1,
        is_kraft_controller=False,
        type=0,
        controller_epoch=first_epoch,
        broker_epoch=broker_epoch,
        topic_states=(),
        live_brokers=(broker,),
    )
    sent = [request_json(message, names) for message in (stop, metadata)]
    result = {"error_code": 0, "responses": [{"partition_index": number} for number in (0, 1)]}
    return Observation([write_json(write, names) for write in writes], {101: sent, 102: []}, result)


def leaves(content: Any) -> Iterator[tuple[Any, Any]]:
    """The container and the key of each value that has no parts."""
    entries = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in entries:
        if isinstance(value, dict | list):
            yield from leaves(value)
        else:
            yield content, key


def mutable(observation: Observation) -> Json:
    """What an observation is made of."""
    return deepcopy(
        {
            "writes": observation.writes,
            "requests": observation.requests,
            "result": observation.result,
        }
    )


def test_other_numbers_are_no_difference() -> None:
    """Epochs, ids, ports and the order of independent partitions differ between runs."""
    kafka, ours = observed(), observed(8, 77, 900)
    assert differences(kafka, ours) == []
    first, zero, one, again, last = ours.writes
    for writes in ([first, one, zero, again, last], [first, zero, again, one, last]):
        assert differences(kafka, replace(ours, writes=writes)) == []


def test_every_value_counts() -> None:
    """A planted difference in any value of a write, a request or a response is found."""
    kafka = observed()
    count = sum(1 for _ in leaves(mutable(kafka)))
    assert count > 60
    for number in range(count):
        ours = mutable(kafka)
        container, key = [*leaves(ours)][number]
        container[key] = "another"
        assert differences(kafka, Observation(**ours)), (container, key)


def test_order_and_number_count() -> None:
    """A write or request that is missing, doubled, too early or at another broker is found."""
    kafka = observed()
    first, zero, one, again, last = kafka.writes
    for writes in (
        [first, again, one, zero, last],
        [zero, one, again, first, last],
        [first, zero, one, again],
        [first, zero, zero, one, again, last],
    ):
        assert differences(kafka, replace(kafka, writes=writes))
    stop, metadata = kafka.requests[101]
    for requests in (
        {101: [metadata, stop]},
        {101: [stop]},
        {101: [stop, metadata], 102: [metadata]},
        {102: [stop, metadata]},
    ):
        assert differences(kafka, replace(kafka, requests=requests))


@pytest.mark.parametrize("index", range(5))
def test_fences_count(index: int) -> None:
    """A write that does not check what Kafka's checks is found; only what clients cause may be
    checked in addition."""
    observation = observed()
    write = observation.writes[index]
    changed = [*observation.writes]
    changed[index] = write | {"checked": [] if write["checked"] else [*FENCE]}
    other = replace(observation, writes=changed)
    is_for_clients = write["path"] in ("/brokers/topics/t", "/admin/delete_topics/u")
    less, more = (other, observation) if write["checked"] else (observation, other)
    assert bool(differences(less, more)) is not is_for_clients
    assert differences(more, less)


def test_an_unknown_epoch_or_id_counts() -> None:
    """The epoch of an earlier registration, and the id of another topic, are found."""
    kafka = observed()
    ours = mutable(kafka)
    ours["requests"][101][0]["broker_epoch"] = 69
    assert differences(kafka, Observation(**ours))
    names = Names(1)
    for topic_id in ("first", "second", "first"):
        names.add_topic_id("t", topic_id)
    assert [names.value("topic_id", text) for text in ("first", "second", "third")] == [
        "t#0",
        "t#1",
        "third",
    ]


def test_the_log_is_read_as_far_as_it_is_written(tmp_path: Path) -> None:
    """An entry that is half written is read later; what is checked belongs to the write."""
    path = tmp_path / "version-2" / "log.1"
    path.parent.mkdir()

    def text(value: str) -> bytes:
        return struct.pack(">i", len(value)) + value.encode()

    def entry(kind: int, content: bytes) -> bytes:
        body = struct.pack(">qiqqi", 5, 1, 1, 1, kind) + content
        return struct.pack(">qi", 0, len(body)) + body + b"B"

    deletion = entry(2, text("/gone"))
    parts = [
        (13, text("/fence") + struct.pack(">i", 3)),
        (5, text("/set") + text("x") + b"\0\0\0\7"),
    ]
    together = struct.pack(">i", len(parts)) + b"".join(
        struct.pack(">ii", kind, len(content)) + content for kind, content in parts
    )
    both = entry(14, together)
    log, padding = ZnodeLog(tmp_path), b"\0" * 64
    assert log.read() == []
    path.write_bytes(b"\0" * 16 + deletion + both[:-9] + padding)
    assert log.read() == [ZnodeWrite(5, "delete", "/gone")]
    path.write_bytes(b"\0" * 16 + deletion + both + padding)
    assert log.read() == [ZnodeWrite(5, "set", "/set", b"x", 7, ("/fence",))]
    assert log.read() == []
