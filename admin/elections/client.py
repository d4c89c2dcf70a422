"""Elects the leaders of partitions, and follows the elections until they are done (KIP-460, KIP-4).

async with ElectionAdmin(Bootstrap(parse_addresses("kafka-1:9092"))) as admin:
    results = await admin.elect(ElectionType.PREFERRED, [TopicPartition("orders", 0)])
    statuses = await admin.wait(results, max_wait_s=30)
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from featurewatch.admin.elections import messages
from featurewatch.admin.elections.messages import ElectionType
from featurewatch.admin.errors import OutcomeUnknownError, UnreachableError
from featurewatch.admin.reassignments.reader import PartitionReader, check_response
from featurewatch.admin.reassignments.types import LivePartition, PartitionError
from featurewatch.controller.partitions.assignment import TopicPartition

_POLL_S: Final = 0.2
_TIMED_OUT: Final = 7
_NOT_CONTROLLER: Final = 41
_NOT_NEEDED: Final = 84


class ElectionStatus(IntEnum):
    """The state of a preferred election, with the numbers of KIP-4's reassignments."""

    FAILED = -1
    """The preferred replica cannot lead: it is not in sync, or there is no such partition."""
    IN_PROGRESS = 0
    """The preferred replica is in sync, and another one leads."""
    COMPLETED = 1


Elections = Mapping[TopicPartition, PartitionError | None]
"""The error of each partition, None where a leader was elected."""


class ElectionAdmin(PartitionReader):
    """Elections of one cluster."""

    async def elect(
        self, kind: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> Elections:
        """Requests elections, of these partitions or (None) of all that need one.

        Kafka answers when the leaders are elected. In KRaft mode it also reports success where
        another replica than the preferred one was elected: `wait` looks who leads.

        Raises:
            RequestRefusedError: The login may not elect leaders.
            UnreachableError: The controller was not reached. Nothing was sent.
            OutcomeUnknownError: It was sent, and no response came, or the controller gave up
                waiting: `verify` shows who leads.
        """
        import asyncio

        wanted = None if partitions is None else tuple(dict.fromkeys(partitions))
        deadline = self.monotonic() + self.timeout_s
        while True:
            response = await self.to_controller(
                messages.ELECT_LEADERS,
                (1, 2),
                lambda version: messages.elect_request(kind, wanted, version, self.timeout_s),
                changes=True,
            )
            answered = messages.read_elections(response)
            check_response(answered.error)
            codes = {error.code for error in answered.partitions.values() if error}
            if _TIMED_OUT in codes:
                raise OutcomeUnknownError("the controller gave up waiting for the new leaders")
            # In ZooKeeper mode a broker that is not the controller says so of each partition.
            if codes != {_NOT_CONTROLLER} or self.monotonic() > deadline:
                return answered.partitions
            await asyncio.sleep(_POLL_S)

    async def verify(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ElectionStatus]:
        """Whether the preferred replica leads each partition (KIP-4): the head of its list."""
        wanted = tuple(partitions)
        present = await self.topics(partition.topic for partition in wanted)
        return {one: _status(present.partitions.get(one)) for one in wanted}

    async def wait(
        self, partitions: Iterable[TopicPartition], *, max_wait_s: float
    ) -> dict[TopicPartition, ElectionStatus]:
        """Repeats `verify` until no partition is in progress.

        Raises:
            UnreachableError: That took longer than ``max_wait_s`` seconds.
        """
        import asyncio

        wanted = tuple(partitions)
        deadline = self.monotonic() + max_wait_s
        while True:
            try:
                statuses = await self.verify(wanted)
                if ElectionStatus.IN_PROGRESS not in statuses.values():
                    return statuses
                why = "other replicas than the preferred ones lead"
            except UnreachableError as error:
                why = str(error)
            if self.monotonic() + _POLL_S > deadline:
                raise UnreachableError(f"not completed in {max_wait_s:g} s: {why}")
            await asyncio.sleep(_POLL_S)


def is_needless(error: PartitionError | None) -> bool:
    """Whether the leader is the wanted one already."""
    return error is not None and error.code == _NOT_NEEDED


def _status(partition: LivePartition | None) -> ElectionStatus:
    if partition is None or not partition.replicas:
        return ElectionStatus.FAILED
    preferred = partition.replicas[0]
    if partition.leader == preferred:
        return ElectionStatus.COMPLETED
    return ElectionStatus.IN_PROGRESS if preferred in partition.isr else ElectionStatus.FAILED
