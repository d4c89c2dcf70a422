"""What clients of reassignments do when the controller moves, is silent or is too old."""

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.errors import OutcomeUnknownError, RequestError, UnreachableError
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.address import Address
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import ApiVersionsResponseV4, MetadataResponseV1, message_class

PARTITION = TopicPartition("t", 0)
TARGETS = {PARTITION: (1, 2)}
API_VERSIONS, METADATA, ALTER = 18, 3, 45
Call = Callable[[ReassignmentAdmin], Awaitable[Any]]


def altered(code: int, version: int = 0) -> bytes:
    """The response to the request of one partition, with an error for all."""
    form = message_class("AlterPartitionReassignmentsResponse", version)
    partition = form.ReassignablePartitionResponse(
        partition_index=0, error_code=0, error_message=None
    )
    topic = form.ReassignableTopicResponse(name="t", partitions=(partition,))
    return write_entity(
        form(
            throttle_time_ms=0,
            error_code=code,
            error_message=None,
            responses=(topic,) if code == 0 else (),
        )
    )


def run(answers: list[bytes | None], call: Call, *, newest: int = 0) -> tuple[Any, int]:
    """The result of a call to a broker that gives these answers, None: it closes the connection.

    Returns the number of requests of the call, too. ``newest`` is the broker's newest version.
    """
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        host, port = writer.get_extra_info("sockname")[:2]
        while header := await reader.read(4):
            frame = await reader.readexactly(int.from_bytes(header))
            key, _, correlation_id = struct.unpack_from(">hhi", frame)
            if key == API_VERSIONS:
                keys = ((METADATA, 0, 12), (API_VERSIONS, 0, 4), (ALTER, 0, newest))
                form = ApiVersionsResponseV4
                offered = tuple(
                    form.ApiVersion(api_key=one, min_version=low, max_version=high)
                    for one, low, high in keys
                )
                body = write_entity(form(error_code=0, api_keys=offered, throttle_time_ms=0))
            elif key == METADATA:
                broker = MetadataResponseV1.MetadataResponseBroker(
                    node_id=1, host=host, port=port, rack=None
                )
                body = write_entity(
                    MetadataResponseV1(brokers=(broker,), controller_id=1, topics=())
                )
            else:
                answer = answers[sent]
                sent += 1
                if answer is None:
                    break
                body = b"\0" + answer
            response = struct.pack(">i", correlation_id) + body
            writer.write(len(response).to_bytes(4) + response)
        writer.close()

    async def work() -> Any:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            address = Address(*server.sockets[0].getsockname())
            async with ReassignmentAdmin(Bootstrap((address,)), timeout_s=30) as admin:
                return await call(admin)

    return asyncio.run(work()), sent


def start(admin: ReassignmentAdmin) -> Coroutine[Any, Any, Any]:
    """Starts the reassignment."""
    return admin.start(TARGETS)


def test_a_request_to_a_broker_that_is_no_controller_is_repeated() -> None:
    """The controller is looked for again after code 41, and the request sent once more (A-34)."""
    assert run([altered(41), altered(41), altered(0)], start) == ({PARTITION: None}, 3)


def test_a_request_without_a_response_has_an_unknown_outcome() -> None:
    """It may have been applied: it is not sent again, and the error says so (A-34)."""
    with pytest.raises(OutcomeUnknownError, match="whether the change was applied is unknown"):
        run([None], start)
    with pytest.raises(OutcomeUnknownError, match="gave up waiting"):
        run([altered(7)], start)


def test_a_refusal_of_all_is_one_of_each_partition() -> None:
    """An error of the whole response has Kafka's text for every partition of the request."""
    results, _ = run([altered(31)], start)
    assert results[PARTITION].text == "Cluster authorization failed."


def test_an_older_controller_cannot_check_the_replication_factor() -> None:
    """Version 1 is what has the check; without it nothing is sent."""
    results, sent = run([], lambda admin: admin.start(TARGETS, allow_factor_change=False))
    assert "AllowReplicationFactorChange" in results[PARTITION].text
    assert sent == 0
    checked = run(
        [altered(0, 1)], lambda admin: admin.start(TARGETS, allow_factor_change=False), newest=1
    )
    assert checked == ({PARTITION: None}, 1)


def test_no_address_is_an_error_at_construction(closed_port: int) -> None:
    """A client needs a broker (A-33); one that nobody serves is unreachable."""
    with pytest.raises(RequestError):
        ReassignmentAdmin(Bootstrap(()))

    async def list_all() -> None:
        nobody = Bootstrap((Address("127.0.0.1", closed_port),))
        async with ReassignmentAdmin(nobody, timeout_s=30) as admin:
            await admin.reassignments()

    with pytest.raises(UnreachableError):
        asyncio.run(list_all())
