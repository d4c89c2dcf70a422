"""A broker for channels on a real socket: it reads requests, and responds as a test orders it."""

import asyncio
import contextlib
import struct
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from featurewatch.kafka.decode import read_entity, skip_header
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import ApiVersionsResponseV0, message_class, versions_of
from featurewatch.reference.zookeeper.machines.encoding import Endpoint

NAMES = {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata"}
VERSIONS = {key: versions_of(f"{name}Request") for key, name in NAMES.items()}

Fault = Callable[[bytes, asyncio.StreamWriter], Any]
"""Handles a request instead of the broker: it is given the right response with its length, and may
return something to await. The connection is closed afterwards."""


class FaultyBroker:
    """Responds to requests with no error, but to the first ones with ``faults``."""

    def __init__(self, versions: Mapping[int, tuple[int, int]] = VERSIONS) -> None:
        self.versions = dict(versions)
        self.faults: deque[Fault] = deque()
        self.requests: list[Any] = []
        """The messages in the order of their arrival, repeated ones included."""
        self.arrivals: list[tuple[float, bytes]] | None = None
        """If it is set, requests are kept here as they are, with the time of their arrival (s), and
        get a response without partitions: a broker that costs nearly nothing."""
        self.permitted = asyncio.Event()
        self.permitted.set()
        self.in_progress = self.most_in_progress = 0
        self.connections = 0
        self.partition_error = 0
        self.clients: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self, port: int = 0) -> AsyncIterator[Endpoint]:
        """Opens the port until the end of the block."""
        server = await asyncio.start_server(self._connected, "127.0.0.1", port, limit=1 << 24)
        try:
            yield Endpoint("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()
            for task in [*self._tasks]:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        ended = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        try:
            with contextlib.suppress(*ended):
                await self._serve(reader, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            content = await reader.readexactly(size)
            key, version, correlation_id, client = struct.unpack_from(">hhih", content)
            if key == 18:
                writer.write(self._api_versions(version, correlation_id))
                continue
            if self.arrivals is not None:
                self.arrivals.append((time.perf_counter(), content))
                writer.write(empty_response(key, version, correlation_id))
                continue
            self.clients.add(content[10 : 10 + client].decode())
            message = request_in(content)
            self.requests.append(message)
            self.in_progress += 1
            self.most_in_progress = max(self.in_progress, self.most_in_progress)
            await self.permitted.wait()
            self.in_progress -= 1
            response = framed(correlation_id, self._response(key, version, message))
            if self.faults:
                waiting = self.faults.popleft()(response, writer)
                if waiting is not None:
                    await waiting
                return
            writer.write(response)

    def _api_versions(self, version: int, correlation_id: int) -> bytes:
        apis = tuple(
            ApiVersionsResponseV0.ApiVersion(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in self.versions.items()
        )
        # As an old broker does it: the client repeats the request in a version that it knows.
        error = 35 if version > 0 else 0
        response = ApiVersionsResponseV0(error_code=error, api_keys=apis)
        return framed(correlation_id, write_entity(response))

    def _response(self, key: int, version: int, message: Any) -> bytes:
        kind = message_class(f"{NAMES[key]}Response", version)
        values: dict[str, Any] = {"error_code": 0}
        items = items_of(kind)
        if (item := items.get("partition_errors")) is not None:
            values["partition_errors"] = tuple(
                item(topic_name=topic, partition_index=number, error_code=self.partition_error)
                for topic, number in partitions_of(message)
            )
        elif (topic_class := items.get("topics")) is not None:
            item = items_of(topic_class)["partition_errors"]
            values["topics"] = tuple(
                topic_class(
                    topic_id=topic.topic_id,
                    partition_errors=tuple(
                        item(partition_index=state.partition_index, error_code=self.partition_error)
                        for state in topic.partition_states
                    ),
                )
                for topic in message.topic_states
            )
        body = write_entity(kind(**values))
        return (b"\0" if kind.__flexible__ else b"") + body


def items_of(kind: Any) -> dict[str, Any]:
    """The classes of the items of arrays, by the names of the fields."""
    return {field.name: field.struct for field in kind.__fields__ if field.struct is not None}


def request_in(content: bytes) -> Any:
    """The message in a request without its length."""
    key, version = struct.unpack_from(">hh", content)
    kind = message_class(f"{NAMES[key]}Request", version)
    message, end = read_entity(kind, content, skip_header(content, 8, flexible=kind.__flexible__))
    assert end == len(content)
    return message


@cache
def _empty_body(key: int, version: int) -> bytes:
    kind = message_class(f"{NAMES[key]}Response", version)
    values = {name: () for name in ("partition_errors", "topics") if name in items_of(kind)}
    return (b"\0" if kind.__flexible__ else b"") + write_entity(kind(error_code=0, **values))


def empty_response(key: int, version: int, correlation_id: int) -> bytes:
    """A response without an error and without partitions."""
    return framed(correlation_id, _empty_body(key, version))


def framed(correlation_id: int, body: bytes) -> bytes:
    """A response with its length and its correlation id; ``body`` has the tags of the header."""
    return struct.pack(">ii", len(body) + 4, correlation_id) + body


def partitions_of(message: Any) -> list[tuple[str, int]]:
    """The partitions of a request of any version."""
    if hasattr(message, "topic_states"):
        return [
            (topic.topic_name, state.partition_index)
            for topic in message.topic_states
            for state in topic.partition_states
        ]
    if hasattr(message, "topics"):
        return [
            (topic.name, number) for topic in message.topics for number in topic.partition_indexes
        ]
    states = getattr(message, "ungrouped_partitions", None)
    states = message.ungrouped_partition_states if states is None else states
    return [(state.topic_name, state.partition_index) for state in states]


# -- faults ----------------------------------------------------------------------------------------


def closes(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Ends the connection instead of responding."""
    writer.close()


def closes_in_the_middle(response: bytes, writer: asyncio.StreamWriter) -> None:
    """Sends the response but for its last byte."""
    writer.write(response[:-1])


def confuses(response: bytes, writer: asyncio.StreamWriter) -> None:
    """Responds to another request."""
    (correlation_id,) = struct.unpack_from(">i", response, 4)
    writer.write(response[:4] + struct.pack(">i", correlation_id + 1) + response[8:])


def babbles(response: bytes, writer: asyncio.StreamWriter) -> None:
    """Sends bytes that are no response, in a frame of the right length."""
    writer.write(response[:8] + b"\xff" * (len(response) - 8))


def boasts(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Announces two gigabytes."""
    writer.write(struct.pack(">i", 2**31 - 1) + b"\0" * 100)


def miscounts(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Announces a negative size."""
    writer.write(struct.pack(">i", -5))


async def _wait(response: bytes, writer: asyncio.StreamWriter, seconds: float) -> None:
    await asyncio.sleep(seconds)
    writer.write(response)


def is_late(response: bytes, writer: asyncio.StreamWriter) -> Any:
    """Responds after the client has given up."""
    return _wait(response, writer, 1.5)


def is_silent(_: bytes, writer: asyncio.StreamWriter) -> Any:
    """Never responds."""
    return _wait(b"", writer, 60)
