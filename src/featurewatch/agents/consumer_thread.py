"""Reads the bus for Faust, and remembers where the read offsets are not consecutive.

Offsets that are missing may be none of Faust's doing: the marker that ends a transaction takes an
offset, an aborted transaction leaves its offsets out, and messages expire. What the fetcher passed
over is such a hole; what it delivered and Faust dropped is not, and may never be passed over.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from aiokafka.errors import RequestTimedOutError
from aiokafka.protocol.group import JoinGroupRequest
from faust.transport.drivers import aiokafka as driver

from featurewatch.agents.membership import MembershipCheck
from featurewatch.streams.bus.settings import REQUEST_TIMEOUT_S

_FETCH_MAX_WAIT_MS: Final = 200
"""How long a fetch of quiet partitions waits. The requests of a recovery wait behind one, and with
Faust's 1,500 ms a restart took three seconds longer. New messages end the wait at once."""

_JOIN_TIMEOUT_S: Final = 20.0
"""How long a request to join may take at most: the bus answers it once all other members have
joined or their sessions have ended."""


MAX_QUEUED_BYTES: Final = 32 << 20
"""The values of messages that wait for their agents. Faust bounds their number, at 4,096 for each
topic, and each may have 16 MiB. What is fetched at once comes on top of it."""

_FULL_S: Final = 0.1
"""How long a fetch waits where too much is queued."""


def queued_bytes(channels: Iterable[Any]) -> int:
    """The bytes of the values that wait in the queues of Faust's channels."""
    queues = {id(channel._queue): channel._queue for channel in channels}
    # Copies: the event loop takes from the queues in another thread.
    waiting = [event for queue in queues.values() if queue is not None for event in [*queue._queue]]
    return sum(len(event.message.value or b"") for event in waiting)


class ReadAhead:
    """Whether more may be fetched while values wait to be processed. Pure; sizes in bytes.

    Counting what waits takes a walk over thousands of messages, so it is counted only where what
    was fetched since the last count could exceed ``limit``.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._most = 0

    def fetched(self, size: int) -> None:
        """Notes the bytes of the values that a fetch returned."""
        self._most += size

    def is_full(self, count: Callable[[], int]) -> bool:
        """Whether more than the limit waits; ``count`` returns what waits, in bytes."""
        if self._most > self._limit:
            self._most = count()
        return self._most > self._limit


class Freshness:
    """How long ago values changed last, by key. Pure; times are monotonic seconds."""

    def __init__(self) -> None:
        self._changed: dict[Any, tuple[Any, float]] = {}

    def observe(self, values: Mapping[Any, Any], now_s: float) -> None:
        """Notes the current values; keys that are not among them are forgotten."""
        changed = {}
        for key, value in values.items():
            last = self._changed.get(key)
            changed[key] = last if last is not None and last[0] == value else (value, now_s)
        self._changed = changed

    def unchanged(self, for_s: float, now_s: float) -> set[Any]:
        """The keys whose values have not changed for ``for_s`` seconds or more."""
        return {key for key, (_, since_s) in self._changed.items() if now_s - since_s >= for_s}


class JumpLog:
    """The places where the next record that was fetched did not have the next offset. Pure.

    A partition is any hashable object.
    """

    def __init__(self) -> None:
        self._next: dict[Any, int] = {}
        self._jumps: dict[Any, dict[int, int]] = {}

    def sought(self, partition: Any) -> None:
        """Notes that the next record of a partition may have any offset."""
        self._next.pop(partition, None)
        self._jumps.pop(partition, None)

    def positioned(self, partition: Any, offset: int) -> None:
        """Notes the offset that is to be fetched next, unless a record was fetched already."""
        self._next.setdefault(partition, offset)

    def fetched(self, partition: Any, offsets: Sequence[int]) -> None:
        """Notes the offsets of records, in the order in which they were fetched."""
        expected = self._next.get(partition)
        for offset in offsets:
            if expected is not None and offset != expected:
                self._jumps.setdefault(partition, {})[offset] = expected
            expected = offset + 1
        if expected is not None:
            self._next[partition] = expected

    def start(self, partition: Any, offset: int) -> int | None:
        """The offset that was due when ``offset`` was fetched (None: that very one was due)."""
        return self._jumps.get(partition, {}).get(offset)

    def take(self, partition: Any, offset: int) -> int | None:
        """Returns the result of `start` and forgets it: each record is judged once."""
        return self._jumps.get(partition, {}).pop(offset, None)


class ConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]  # faust is not typed
    """Faust's reading thread, which reads committed messages only and keeps a `JumpLog`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.jumps = JumpLog()
        self._read_ahead = ReadAhead(MAX_QUEUED_BYTES)
        self._membership: MembershipCheck | None = None
        self._has_stale_metadata = False

    async def on_start(self) -> None:
        """Starts the consumer, as Faust's."""
        await super().on_start()
        self._membership = MembershipCheck(self._consumer._coordinator, self._check_membership)

    async def on_thread_stop(self) -> None:
        """Stops the consumer, as Faust's, also while a fetch waits to be tried again.

        aiokafka cancels that fetch, and the cancellation then ends whatever awaits it: the thread
        would end without telling Faust, which would wait for it for up to a minute.
        """
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            await self._consumer._client.close()

    async def _check_membership(self, member_id: str) -> None:
        check = self.consumer.app.check_membership(member_id)
        checking = asyncio.run_coroutine_threadsafe(check, self.parent_loop)
        await asyncio.wrap_future(checking)

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Faust asks for it with its own transactions only; ours are those of the changelog.
        consumer._isolation_level = "read_committed"
        consumer._fetch_max_wait_ms = _FETCH_MAX_WAIT_MS
        _set_timeouts(consumer._client)
        self._watch_metadata(consumer._client)
        return consumer

    def _watch_metadata(self, client: Any) -> None:
        """Notes when an aiokafka client requests metadata because something was refused."""
        force_metadata_update = client.force_metadata_update

        def force() -> Any:
            self._has_stale_metadata = True
            return force_metadata_update()

        client.force_metadata_update = force

    def take_stale_metadata(self) -> bool:
        """Whether the bus has refused something since the last call, as topics changed."""
        was_stale, self._has_stale_metadata = self._has_stale_metadata, False
        return was_stale

    def fetch_times(self) -> dict[tuple[str, int], Any]:
        """When each assigned partition was fetched last, by topic and number; for comparisons."""
        assignment = self._assignment()
        return {
            (partition.topic, partition.partition): assignment.state_value(partition).timestamp
            for partition in (assignment.tps if assignment is not None else ())
        }

    def refresh_time(self) -> Any:
        """When a broker answered a metadata request last; for comparisons."""
        return self._consumer and self._consumer._client.cluster._last_successful_refresh_ms

    def member_id(self) -> str:
        """`MembershipCheck.member_id`."""
        return self._membership.member_id if self._membership is not None else ""

    def has_coordinator(self) -> bool:
        """Whether the broker that coordinates the consumer group is known and answers."""
        return bool(self._consumer and self._consumer._coordinator.coordinator_id is not None)

    async def committed(self, partitions: Collection[Any]) -> dict[Any, int]:
        """The committed offsets of partitions, as the bus has them; without those that have none.

        One request to the bus.
        """
        fetch = self._ensure_consumer()._coordinator.fetch_committed_offsets
        found = await self.call_thread(fetch, list(partitions))
        return {partition: it.offset for partition, it in found.items() if it.offset >= 0}

    def rejoin(self) -> None:
        """Joins the consumer group again, which reassigns the partitions."""
        if self._consumer is not None:
            coordinator = self._consumer._coordinator
            self.thread_loop.call_soon_threadsafe(coordinator.request_rejoin)

    def _assignment(self) -> Any:
        subscription = self._consumer and self._consumer._subscription.subscription
        return subscription and subscription.assignment

    async def _fetch_records(self, consumer: Any, *args: Any, **kwargs: Any) -> Any:
        if self._read_ahead.is_full(lambda: queued_bytes(self.consumer.app.topics)):
            await asyncio.sleep(_FULL_S)
            return {}
        assignment = consumer._subscription.subscription.assignment
        if assignment is not None:
            for partition in assignment.tps:
                state = assignment.state_value(partition)
                if state is not None and state.has_valid_position:
                    self.jumps.positioned(partition, state.position)
        records: Mapping[Any, Sequence[Any]] = await super()._fetch_records(
            consumer, *args, **kwargs
        )
        for partition, items in (records or {}).items():
            self._read_ahead.fetched(sum([len(record.value or b"") for record in items]))
            if not self.consumer._is_changelog_tp(partition):
                self.jumps.fetched(partition, [record.offset for record in items])
        return records

    async def _seek_wait(self, consumer: Any, partitions: Mapping[Any, int]) -> None:
        for partition in partitions:
            self.jumps.sought(partition)
        await super()._seek_wait(consumer, partitions)

    async def seek_to_committed(self) -> Any:
        """Seeks the committed offsets, as Faust's, and lets go of what was fetched before."""
        for partition in list(self.jumps._next):
            self.jumps.sought(partition)
        return await super().seek_to_committed()


def _set_timeouts(client: Any) -> None:
    """Limits each request of an aiokafka client; a request to join gets longer each time."""
    client._request_timeout_ms = round(REQUEST_TIMEOUT_S * 1000)
    send = client.send
    join_timeout_s = REQUEST_TIMEOUT_S

    async def send_with_timeout(node_id: Any, request: Any, **group: Any) -> Any:
        nonlocal join_timeout_s
        if not isinstance(request, JoinGroupRequest):
            return await send(node_id, request, **group)
        connection = await client._get_conn(node_id, **group)
        if connection is not None:
            connection._request_timeout = join_timeout_s
        try:
            response = await send(node_id, request, **group)
        except RequestTimedOutError:
            join_timeout_s = min(join_timeout_s * 2, _JOIN_TIMEOUT_S)
            raise
        else:
            join_timeout_s = REQUEST_TIMEOUT_S
            return response
        finally:
            if connection is not None:
                connection._request_timeout = REQUEST_TIMEOUT_S

    client.send = send_with_timeout
