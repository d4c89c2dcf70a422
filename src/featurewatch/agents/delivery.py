"""Reads the messages that Faust delivers, and detects by their offsets what is missing.

Messages expire, topics are recreated, and brokers may lose what they acknowledged: such messages
are lost. Messages that the topic still has and that were not delivered are skipped, which is an
error of the process.
"""

from typing import Any

from featurewatch.agents.at_least_once import AtLeastOnceApp, SkippedOffsetsError
from featurewatch.monitor.input_messages import (
    InputMessage,
    ProcessResult,
    begins_in_the_middle,
    input_topic,
)
from featurewatch.monitor.step import MonitorState
from featurewatch.streams.types import LATEST_MS
from featurewatch.tables.image.sources import MessagePosition


def input_message(message: Any) -> InputMessage:
    """The input message of a Faust message, whose timestamp is in seconds.

    Any producer may set it to anything: it is put between the years 1970 and 9999.
    """
    time_ms = min(max(round((message.timestamp or 0) * 1000), 0), LATEST_MS)
    position = (message.topic, message.partition, message.offset)
    return InputMessage(*position, time_ms, message.key, message.value)


class GapDetector:
    """Compares the offsets of the messages of ``app`` with those that are due."""

    def __init__(self, app: AtLeastOnceApp) -> None:
        self._app = app
        self._late: set[tuple[str, int]] = set()
        """Partitions, by full topic name and number, whose beginning expired before this worker
        first read them."""

    async def due_offset(self, message: Any) -> int:
        """The offset that is due in the partition of a Faust message.

        After ``message.offset``: it was processed before. Before it: the messages in between are
        lost to every cluster of the partition.

        Raises:
            SkippedOffsetsError: Messages before it were skipped, and the topic still has them.
            RevokedError: This worker has lost the partition.
        """
        jump_start = self._app.take_jump(message.tp, message.offset)
        if jump_start is not None and jump_start > message.offset:
            return int(message.offset)  # the log went back: `reversal_reason`
        expected = self._app.tracker.next_offset(message.tp)
        if expected is None:
            expected = self._app.committed(message.tp)
        if expected is None:
            expected = await self._app.log_start(message.tp)
            if expected > 0:
                self._late.add((message.topic, message.partition))
        if message.offset <= expected:
            return expected
        if await self._app.log_start(message.tp) > expected:
            return expected
        if jump_start != expected:
            raise SkippedOffsetsError(f"offset {expected} was expected but not delivered")
        return int(message.offset)

    def late_reason(self, message: InputMessage, result: ProcessResult) -> str | None:
        """Why a new cluster lacks messages (None: it does not), if its topic's beginning expired.

        ``result`` is what the message leads to.
        """
        if (message.topic, message.partition) not in self._late or result.dead_letter is not None:
            return None
        if not begins_in_the_middle(message, result.before):
            return None
        return "the messages before expired before a worker first read the topic"


def reversal_reason(message: InputMessage, before: MonitorState) -> str | None:
    """Why messages are lost if one has an offset that an older one of its cluster had (else None).

    ``before`` is the cluster's state before the message. Pure.
    """
    topic = input_topic(message.topic).short_name
    position = MessagePosition(topic, message.offset, message.time_ms)
    if not before.image.sources.goes_back(position):
        return None
    return (
        f"offset {message.offset} came after offset {before.image.sources.read[topic].offset}: the "
        "topic was recreated, or its brokers lost acknowledged messages"
    )
