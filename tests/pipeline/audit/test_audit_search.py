"""The search for the order in which a worker processed a cluster's topics."""

from collections.abc import Callable, Iterable
from typing import Any

import orjson
import pyarrow as pa
import pytest

from featurewatch.monitor.input_messages import InputMessage, process
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS
from featurewatch.pipeline.audit import order_search
from featurewatch.pipeline.audit.order_search import (
    LiveOutput,
    OrderSearch,
    TimedMessage,
    max_folds,
    queued,
)
from featurewatch.pipeline.audit.reordering import _search
from featurewatch.streams.codec.events import encode
from featurewatch.streams.codec.outputs import Output, encode_output
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import Alert, FeatureChange
from featurewatch.streams.topics import METADATA_LOG, ZOOKEEPER
from tests.pipeline.audit.lakes import Read, Topics, history, in_another_order, with_crashes, work
from tests.plugins.nightly import case_count, case_seeds

Order = Callable[[list[Read], int], list[Read]]
Live = dict[str, list[LiveOutput]]
Outputs = list[tuple[Output, int]]

ALTERED = "log-gap/log/firing/cluster-1163/kraft/gap-7-11@"
"""An alert that is published twice by one event, since its log is read again, a minute later."""

LEAPS_MS = (61_000,)
"""The text of an alert alone is published after a minute."""


def live_of(outputs: Iterable[tuple[Output, int]]) -> Live:
    """The live outputs: the contents of each id, with the time of the first publication."""
    times_by_content: dict[str, dict[bytes, int]] = {}
    for output, at_ms in outputs:
        message = encode_output(output)
        texts = times_by_content.setdefault(dict(message.headers)["ce_id"].decode(), {})
        texts.setdefault(message.value or b"", at_ms)
    return {
        name: [LiveOutput(orjson.loads(text), at_ms, due=True) for text, at_ms in texts.items()]
        for name, texts in times_by_content.items()
    }


def cause_of(output: Output) -> str | int | None:
    """The part of an output that identifies its cause."""
    if isinstance(output, Alert):
        return output.cause
    return output.seen_ms if isinstance(output, FeatureChange) else None


def published_at(event: Event, times: dict[str | int | None, int]) -> int | None:
    """When the worker published the outputs of an event (None: no outputs)."""
    published = [times[name] for name in (event.id, event.seen_ms) if name in times]
    return max(published, default=None)


def search(seed: int, reads: list[Read], outputs: Outputs, live: Live) -> bool | None:
    """Whether a valid order is found for the messages of a history (None: the search ended)."""
    times = {cause_of(output): at_ms for output, at_ms in outputs}
    topics: dict[str, list[TimedMessage]] = {}
    for read in reads:
        at_ms, topic, event = read.source_event
        encoded = encode(topic, event)
        message = InputMessage(topic.name(), 0, read.offset, at_ms, encoded.key, encoded.value)
        timed = TimedMessage(message, published_at(event, times), settled=True)
        topics.setdefault(topic.short_name, []).append(timed)
    queues = [queued(messages) for messages in topics.values()]
    return OrderSearch(f"cluster-{seed}", queues, live).finds_order()


def topic_by_topic(reads: list[Read], _: int) -> list[Read]:
    """The order of a worker that stood still for the second half: one topic after the other."""
    at = len(reads) // 2
    late = sorted(reads[at:], key=lambda read: read.source_event[1].short_name)
    first_ms = reads[-1].processed_ms
    return [*reads[:at], *(read._replace(processed_ms=first_ms + n) for n, read in enumerate(late))]


def is_found(seed: int, order: Order) -> bool:
    """Whether the order of a worker is found."""
    reads = Topics().publish(history(seed))
    outputs = [*work(order(reads, seed))]
    return search(seed, reads, outputs, live_of(outputs)) is True


def test_an_order_is_found_where_there_is_one() -> None:
    """Whether the worker was late with a topic now and then, or processed one topic after the
    other."""
    seeds = case_seeds(150)
    assert [seed for seed in seeds if not is_found(seed, in_another_order)] == []
    assert [seed for seed in seeds if not is_found(seed, topic_by_topic)] == []


# Many messages before the first output, logs that are read again, and the most corrections.
@pytest.mark.parametrize("seed", [65, 76, 79, 109, 227, 249, 347, 464, 794, 860])
def test_an_order_is_found_after_crashes(seed: int) -> None:
    """Neither duplicate messages and outputs nor messages without outputs hinder the search."""
    reads, outputs = with_crashes(Topics(), seed)
    assert search(seed, reads, outputs, live_of(outputs))


def test_an_alert_that_is_raised_again_has_another_id() -> None:
    """A log that went backwards and is read again raises an alert twice by one event: both have
    their own ids, and both are right, even if only one topic has the cluster."""
    seed = 1163
    reads, outputs = with_crashes(Topics(), seed, LEAPS_MS)
    live = live_of(outputs)
    assert all(len(contents) == 1 for contents in live.values())
    names = [name for name in live if ALTERED in name]
    assert len(names) == 2
    assert search(seed, reads, outputs, live)
    for name in names:
        others = {other: contents for other, contents in live.items() if other != name}
        assert not search(seed, reads, outputs, others)
    events = history(seed, leaps_ms=LEAPS_MS)
    reads = Topics().publish([event for event in events if event[1] is METADATA_LOG])
    outputs = [*work(reads)]
    live = live_of(outputs)
    assert len([name for name in live if ALTERED in name]) == 2
    assert search(seed, reads, outputs, live)


def test_no_order_says_what_is_wrong() -> None:
    """No live output may be missing, be invented, or have another content."""
    for seed in range(case_count(50)):
        reads = Topics().publish(history(seed))
        outputs = [*work(reads)]
        live = live_of(outputs)
        assert search(seed, reads, outputs, live)
        name = [*live][seed % len(live)]
        output = live[name][0]
        fewer = {other: contents for other, contents in live.items() if other != name}
        assert not search(seed, reads, outputs, fewer)
        assert not search(seed, reads, outputs, live | {f"{name}/again": [output]})
        changed = output._replace(content={**output.content, "cluster": "another"})
        assert not search(seed, reads, outputs, live | {name: [changed]})


def test_a_search_of_a_large_cluster_ends() -> None:
    """A small cluster has 70 folds a message, of a million messages each has five."""
    assert [max_folds(count) for count in (0, 100, 10_000)] == [4_000, 11_000, 704_000]
    assert max_folds(1_000_000) == 5_000_000
    counts = range(0, 100_000, 100)
    assert all(max_folds(count) < max_folds(count + 100) for count in counts)


def test_a_search_that_was_ended_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says neither that there is an order nor that there is none, and folds no more."""
    seed = next(seed for seed in range(50) if len(Topics().publish(history(seed))) > 40)
    reads = Topics().publish(history(seed))
    outputs = [*work(reads)]
    live = live_of(outputs)
    folded = []

    def counted(*arguments: Any) -> Any:
        folded.append(arguments)
        return process(*arguments)

    monkeypatch.setattr(order_search, "process", counted)
    monkeypatch.setattr(order_search, "max_folds", lambda _: 7)
    assert search(seed, reads, outputs, live) is None
    assert len(folded) == 7
    monkeypatch.undo()
    assert search(seed, reads, outputs, live) is True


def test_an_ended_search_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cluster of an ended search has a row that does not say whether there is an order."""
    monkeypatch.setattr(order_search, "max_folds", lambda _: 0)
    message = {"cluster": "c", "topic": METADATA_LOG.name(), "partition": 0, "offset": 0}
    content: dict[str, Any] = {"key": b"c", "value": b"{", "names": [None], "settled": True}
    inputs = pa.Table.from_pylist([message | {"time_ms": 1} | content])
    output = {"id": "a", "live": "{}", "due": True, "cause": None, "published_ms": 2}
    found = _search(DEFAULT_LIMITS, inputs, pa.Table.from_pylist([output]))
    assert found.to_pylist() == [{"cluster": "c", "is_reordered": None}]


def test_when_a_message_was_taken_in_follows_from_what_is_known_of_others() -> None:
    """A message without outputs was processed after the previous one of its topic, and before the
    next one that has outputs."""
    messages = [InputMessage("featurewatch.metadata-log", 0, n, n, b"a", b"") for n in range(5)]
    published = [None, 70, None, 90, None]
    pairs = zip(messages, published, strict=True)
    queue = queued([TimedMessage(message, at_ms, settled=True) for message, at_ms in pairs])
    assert [message.from_ms for message in queue] == [0, 70, 70, 90, 90]
    assert [message.until_ms for message in queue] == [70, 70, 90, 90, 90]


def test_a_live_output_that_is_no_json_ends_no_audit() -> None:
    """No order yields it, so its cluster keeps its findings."""
    message = {
        "cluster": "c",
        "topic": METADATA_LOG.name(),
        "partition": 0,
        "offset": 0,
        "time_ms": 1,
    }
    content: dict[str, Any] = {"key": b"c", "value": b"{", "names": [None, "t 0"], "settled": True}
    inputs = [message | content, message | content | {"topic": ZOOKEEPER.name()}]
    output = {"id": "a", "live": "{", "due": True, "cause": None, "published_ms": 2}
    found = _search(DEFAULT_LIMITS, pa.Table.from_pylist(inputs), pa.Table.from_pylist([output]))
    assert found.column("cluster").to_pylist() == []
