"""Prints an output topic: the existing messages in order, then new ones."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol, TypeVar

from confluent_kafka import Message
from rich.text import Text

from featurewatch.cli.output import rendering
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import MalformedEventError
from featurewatch.streams.topics import Topic

LOG: Final = logging.getLogger("featurewatch.cli")


class _Output(Protocol):
    @property
    def cluster(self) -> str: ...

    @property
    def id(self) -> str: ...


OutputT = TypeVar("OutputT", bound=_Output)


def print_topic(
    bus: BusSettings,
    topic: Topic,
    decode: Callable[[bytes | None], OutputT],
    line: Callable[[OutputT], Text],
    order: Callable[[OutputT], Any],
    *,
    cluster: str,
    follow: bool,
    as_json: bool,
) -> None:
    """Prints the outputs on a topic, each cause once, sorted by ``order``; then those that come.

    ``cluster``: only this one (empty: all).
    """
    console = rendering.console()

    def show(output: OutputT) -> None:
        if as_json:
            rendering.print_json(output)
        else:
            console.print(line(output), soft_wrap=True)

    with contextlib.closing(TopicReader(bus, topic)) as reader:
        seen: dict[str, OutputT] = {}
        for output in decode_messages(reader.read_existing(), decode):
            if not cluster or output.cluster == cluster:
                seen.setdefault(output.id, output)
        for output in sorted(seen.values(), key=order):
            show(output)
        while follow:
            for output in decode_messages(reader.poll(1.0), decode):
                if output.id not in seen and cluster in ("", output.cluster):
                    seen[output.id] = output
                    show(output)


def decode_messages(
    messages: Iterable[Message], decode: Callable[[bytes | None], OutputT]
) -> Iterator[OutputT]:
    """The outputs in messages; one that cannot be read is logged and skipped."""
    for message in messages:
        if message.value() is None:
            continue
        try:
            yield decode(message.value())
        except MalformedEventError as error:
            place = f"{message.topic()} partition {message.partition()} offset {message.offset()}"
            LOG.error("%s: %s", place, error)
