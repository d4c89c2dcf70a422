"""The order in which gold folds a cluster's messages: by offset, whatever Kafka's times are."""

from random import Random

import pytest

from featurewatch.monitor.input_messages import InputMessage
from featurewatch.pipeline.derived.query import FoldQuery
from featurewatch.pipeline.derived.spark_fold import in_order
from featurewatch.pipeline.fold.messages import flush_outputs, fold_message, restore_state
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.run import run_once
from featurewatch.streams.topics import METADATA_LOG
from tests.pipeline.filling import Messages
from tests.pipeline.gold.parity import differences, gold, history, line, tables_of

HOUR_MS = 3_600_000


def test_offsets_order_a_partition_and_times_order_topics() -> None:
    """A message with an older time than the one before it follows it at once."""
    positions = [
        ("log", 0, 7, 100),
        ("log", 0, 8, 50),
        ("log", 0, 9, 120),
        ("nodes", 0, 3, 80),
        ("nodes", 0, 4, 110),
        ("nodes", 1, 1, 60),
    ]
    messages = [(1, InputMessage(*position, b"", b"")) for position in positions]
    Random(1).shuffle(messages)
    expected = [positions[n] for n in (5, 3, 0, 1, 4, 2)]
    assert [message[:4] for message in in_order(messages)] == expected


@pytest.mark.stack
@pytest.mark.nightly
def test_times_that_run_backwards_change_nothing(lake: Lake) -> None:
    """Each round begins with the newest time, as an outage of the bus leaves it; a batch and a
    stream yield what the worker yields, message by message."""
    events = [event for event in history(5, 60) if line(event)[0] is METADATA_LOG]
    state, outputs, messages = restore_state(events[0].cluster, {}), [], Messages()
    middle = len(events) // 2
    assert middle > 10
    for offset, event in enumerate(events):
        topic, key, value = line(event)
        time_ms = (1000 * (offset >= middle) + 500 - offset) * HOUR_MS
        messages.add(topic, key, value, time_ms)
        state, new = fold_message(state, InputMessage(topic.name(), 0, offset, time_ms, key, value))
        outputs += new
        if offset in (middle - 1, len(events) - 1):
            messages.into(lake)
            run_once(lake, [FoldQuery(lake).writer])
    expected = tables_of(outputs + flush_outputs(state)[1])
    assert len(expected["change"]) > 5
    assert differences(gold(lake), expected) == []
