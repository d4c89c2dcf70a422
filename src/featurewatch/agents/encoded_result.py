"""Encodes what a message leads to, before anything of it is written."""

from typing import NamedTuple

from featurewatch.monitor.input_messages import ProcessResult
from featurewatch.monitor.rows import rows_of_step
from featurewatch.streams.bus.errors import EventTooLargeError
from featurewatch.streams.bus.settings import MAX_EVENT_BYTES, BusSettings
from featurewatch.streams.codec.events import Message, encode
from featurewatch.streams.codec.outputs import encode_output, topic_of
from featurewatch.streams.topics import DEAD_LETTERS
from featurewatch.tables.rows import Row


class EncodedResult(NamedTuple):
    """A result as it will be written: messages with their full topic names, and rows."""

    result: ProcessResult
    messages: list[tuple[str, Message]]
    rows: list[Row]


def encode_result(bus: BusSettings, result: ProcessResult) -> EncodedResult:
    """Encodes the outputs and rows of a result.

    Raises:
        EventTooLargeError: The bus would refuse one of them.
    """
    messages = []
    if result.dead_letter is not None:
        messages.append((bus.topic(DEAD_LETTERS), encode(DEAD_LETTERS, result.dead_letter)))
    messages += [
        (bus.topic(topic_of(output)), encode_output(output)) for output in result.step.outputs
    ]
    rows = [] if result.step.state is result.before else rows_of_step(result.before, result.step)
    sizes = [*(message.size for _, message in messages), *map(_size_of_row, rows)]
    if max(sizes, default=0) > MAX_EVENT_BYTES:
        raise EventTooLargeError(
            f"it leads to a message of {max(sizes)} bytes, and the bus accepts {MAX_EVENT_BYTES}"
        )
    return EncodedResult(result, messages, rows)


def _size_of_row(row: Row) -> int:
    name, value = row
    return len(name.encode()) + len(value or b"")
