"""Elects the leaders of partitions, and follows the elections until they are done (KIP-460, KIP-4).

async with ElectionAdmin.connect("kafka-1:9092") as admin:
    results = await admin.elect(ElectionType.PREFERRED, [TopicPartition("orders", 0)])
    statuses = await admin.wait(results, max_wait_s=30)
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from featurewatch.admin.api_errors import (
    NOT_CONTROLLER,
    TIMED_OUT,
    TOPIC_NO_RIGHT,
    ResponseError,
    api_error,
)
from featurewatch.admin.cluster.reader import ClusterReader
from featurewatch.admin.cluster.values import numbers_by_topic
from featurewatch.admin.elections.status import ElectionStatus, election_status
from featurewatch.admin.errors import (
    KafkaApiError,
    OutcomeUnknownError,
    UnreachableError,
    check_response,
)
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka import messages

_POLL_S: Final = 0.2
_ELECT_LEADERS: Final = 43
_NOT_NEEDED: Final = 84


class ElectionType(IntEnum):
    """The kind of an election, with Kafka's numbers (``ElectionType``)."""

    PREFERRED = 0
    """The first replica, if it is in sync."""
    UNCLEAN = 1
    """Any running replica, where none is in sync: messages may be lost."""


Elections = Mapping[TopicPartition, ResponseError | None]
"""The error of each partition, None where a leader was elected."""


class ElectionAdmin(ClusterReader):
    """Elections of one cluster."""

    async def elect(
        self, kind: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> Elections:
        """Requests elections, of these partitions or (None) of all that need one.

        Kafka answers when the leaders are elected. In KRaft mode it also reports success where
        another replica than the preferred one was elected: `wait` looks who leads.

        Raises:
            KafkaApiError: The login may not elect leaders.
            UnreachableError: The controller was not reached. Nothing was sent.
            OutcomeUnknownError: It was sent, and no response came, or the controller gave up
                waiting: `verify` shows who leads.
        """
        form = messages.ElectLeadersRequestV2
        topics = None
        if partitions is not None:
            topics = tuple(
                form.TopicPartitions(topic=topic, partitions=tuple(numbers))
                for topic, numbers in numbers_by_topic(dict.fromkeys(partitions)).items()
            )
        response = await self.perform(
            lambda timeout_ms: form(
                election_type=int(kind), topic_partitions=topics, timeout_ms=timeout_ms
            ),
            _is_refused,
        )
        check_response(response, _ELECT_LEADERS)
        results = _results(response)
        if any(error and error.code == TIMED_OUT for error in results.values()):
            raise OutcomeUnknownError("the controller gave up waiting for the new leaders")
        return results

    async def verify(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ElectionStatus]:
        """Whether the preferred replica leads each partition (KIP-4): the head of its list.

        Raises:
            KafkaApiError: The login may not see one of the topics.
        """
        wanted = tuple(partitions)
        present = await self.topics(partition.topic for partition in wanted)
        for error in present.errors.values():
            if error.code == TOPIC_NO_RIGHT:
                raise KafkaApiError(*error)
        return {
            one: election_status(shown.leader, shown.replicas, shown.isr, present.brokers)
            if (shown := present.partitions.get(one))
            else ElectionStatus.FAILED
            for one in wanted
        }

    async def wait(
        self, partitions: Iterable[TopicPartition], *, max_wait_s: float
    ) -> dict[TopicPartition, ElectionStatus]:
        """Repeats `verify` until no partition is in progress.

        Raises:
            UnreachableError: That took longer than ``max_wait_s`` seconds.
        """
        wanted = tuple(partitions)
        deadline = self._monotonic() + max_wait_s
        while True:
            try:
                statuses = await self.verify(wanted)
                if ElectionStatus.IN_PROGRESS not in statuses.values():
                    return statuses
                why = "other replicas than the preferred ones lead"
            except UnreachableError as error:
                why = str(error)
            if self._monotonic() + _POLL_S > deadline:
                raise UnreachableError(f"not completed in {max_wait_s:g} s: {why}")
            await self._pause(_POLL_S)


def is_needless(error: ResponseError | None) -> bool:
    """Whether the preferred replica already leads."""
    return error is not None and error.code == _NOT_NEEDED


def _is_refused(response: "messages.ElectLeadersResponseV2") -> bool:
    """In ZooKeeper mode a broker other than the controller reports it for each partition."""
    codes = {error and error.code for error in _results(response).values()}
    return NOT_CONTROLLER in (response.error_code, *codes)


def _results(response: "messages.ElectLeadersResponseV2") -> Elections:
    """The error of each partition, in the order of the response."""
    return {
        TopicPartition(topic.topic, entry.partition_id): api_error(
            entry.error_code, entry.error_message, _ELECT_LEADERS
        )
        for topic in response.replica_election_results
        for entry in topic.partition_result
    }
