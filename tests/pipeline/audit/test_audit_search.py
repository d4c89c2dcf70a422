"""The search for the order in which a worker took the topics of a cluster in."""

from collections.abc import Callable, Iterable

import orjson
import pytest

from featurewatch.pipeline.audit.order_search import LiveOutput, OrderSearch, TimedMessage, queued
from featurewatch.pipeline.fold.messages import InputMessage
from featurewatch.streams.codec.events import encode
from featurewatch.streams.codec.outputs import Output, encode_output
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import Alert, FeatureChange
from featurewatch.streams.topics import METADATA_LOG
from tests.pipeline.audit.lakes import (
    ReadEvent,
    Topics,
    history,
    in_another_order,
    with_crashes,
    work,
)

Order = Callable[[list[ReadEvent], int], list[ReadEvent]]
Live = dict[str, list[LiveOutput]]
Outputs = list[tuple[Output, int]]

ALTERED = "resolved/cluster-145/kraft/3-4"
"""An alert that ends twice, since its cause is read again: with another beginning each time."""


def live_outputs_of(outputs: Iterable[tuple[Output, int]]) -> Live:
    """What was said live: the words of each id, with the time of the first."""
    found: dict[str, dict[bytes, int]] = {}
    for output, at_ms in outputs:
        message = encode_output(output)
        texts = found.setdefault(dict(message.headers)["ce_id"].decode(), {})
        texts.setdefault(message.value or b"", at_ms)
    return {
        name: [LiveOutput(orjson.loads(text), at_ms, due=True) for text, at_ms in texts.items()]
        for name, texts in found.items()
    }


def named(output: Output) -> str | int | None:
    """What an output says of its cause."""
    if isinstance(output, Alert):
        return output.cause
    return output.seen_ms if isinstance(output, FeatureChange) else None


def spoken(event: Event, times: dict[str | int | None, int]) -> int | None:
    """When the worker spoke of an event."""
    found = [times[name] for name in (event.id, event.seen_ms) if name in times]
    return max(found, default=None)


def search(seed: int, reads: list[ReadEvent], outputs: Outputs, live: Live) -> bool:
    """Whether an order is found for the messages of a history."""
    times = {named(output): at_ms for output, at_ms in outputs}
    topics: dict[str, list[TimedMessage]] = {}
    for read in reads:
        at_ms, topic, event = read.timed
        sent = encode(topic, event)
        message = InputMessage(topic.name(), 0, read.offset, at_ms, sent.key, sent.value)
        taken = TimedMessage(message, spoken(event, times), settled=True)
        topics.setdefault(topic.short_name, []).append(taken)
    queues = [queued(messages) for messages in topics.values()]
    return OrderSearch(f"cluster-{seed}", queues, live).finds_order()


def topic_by_topic(reads: list[ReadEvent], _: int) -> list[ReadEvent]:
    """As a worker that stood still since the middle may take in what came: one topic at once."""
    at = len(reads) // 2
    late = sorted(reads[at:], key=lambda read: read.timed[1].short_name)
    first = reads[-1].processed_ms
    return [*reads[:at], *(one._replace(processed_ms=first + n) for n, one in enumerate(late))]


def is_found(seed: int, order: Order) -> bool:
    """Whether the order of one worker is found."""
    reads = Topics().publish(history(seed))
    outputs = [*work(order(reads, seed))]
    return search(seed, reads, outputs, live_outputs_of(outputs))


def test_an_order_is_found_where_there_is_one() -> None:
    """Whether a worker was late with a topic now and then, or took one topic after the other."""
    assert [seed for seed in range(40) if not is_found(seed, in_another_order)] == []
    assert [seed for seed in range(40) if not is_found(seed, topic_by_topic)] == []


# Long silence before the first word, logs that are read anew, and the most corrections.
@pytest.mark.parametrize("seed", [65, 76, 79, 109, 227, 249, 347, 464, 794, 860])
def test_an_order_is_found_after_crashes(seed: int) -> None:
    """Messages that were published again and outputs that were said again are no hindrance, and
    neither is it that nothing was said of most messages."""
    reads, outputs = with_crashes(Topics(), seed)
    assert search(seed, reads, outputs, live_outputs_of(outputs))


def test_what_is_told_anew_may_have_other_words() -> None:
    """A log that is read again after it went backwards gives the same id with other words: both are
    right, also where only one topic tells of the cluster, and neither may be missing."""
    seed = 145
    reads, outputs = with_crashes(Topics(), seed)
    live = live_outputs_of(outputs)
    (name,) = [name for name, sayings in live.items() if len(sayings) > 1]
    assert name.endswith(ALTERED)
    assert search(seed, reads, outputs, live)
    for output in live[name]:
        assert not search(seed, reads, outputs, live | {name: [output]})
    reads = Topics().publish([timed for timed in history(seed) if timed[1] is METADATA_LOG])
    outputs = [*work(reads)]
    live = live_outputs_of(outputs)
    assert len(live[name]) > 1
    assert search(seed, reads, outputs, live)


def test_no_order_says_what_is_wrong() -> None:
    """Of what was said, nothing may be missing, be made up, or have other words."""
    for seed in range(12):
        reads = Topics().publish(history(seed))
        outputs = [*work(reads)]
        live = live_outputs_of(outputs)
        assert search(seed, reads, outputs, live)
        name = [*live][seed % len(live)]
        output = live[name][0]
        fewer = {other: sayings for other, sayings in live.items() if other != name}
        assert not search(seed, reads, outputs, fewer)
        assert not search(seed, reads, outputs, live | {f"{name}/again": [output]})
        changed = output._replace(content={**output.content, "cluster": "another"})
        assert not search(seed, reads, outputs, live | {name: [changed]})


def test_when_a_message_was_taken_in_follows_from_what_was_said_of_others() -> None:
    """A message of which nothing was said was taken in after the one before it on its topic, and
    before the next of which something was."""
    messages = [InputMessage("featurewatch.metadata-log", 0, n, n, b"a", b"") for n in range(5)]
    said = [None, 70, None, 90, None]
    pairs = zip(messages, said, strict=True)
    found = queued([TimedMessage(message, at_ms, settled=True) for message, at_ms in pairs])
    assert [one.from_ms for one in found] == [0, 70, 70, 90, 90]
    assert [one.until_ms for one in found] == [70, 70, 90, 90, 90]
