"""Any message on an input topic is applied or becomes a dead letter."""

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.agents.processor import encode_result
from featurewatch.monitor.input_messages import InputMessage, process
from featurewatch.monitor.rows import states_of_rows
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.topics import API_VERSIONS, METADATA_LOG, ZOOKEEPER
from featurewatch.streams.types import ClusterId
from tests import strategies as plausible
from tests.forging import forge
from tests.streams import events_strategies as some
from tests.streams.encoded import value_of

CLUSTER = ClusterId("c")
BUS = BusSettings("nowhere:1")
EVENTS = (
    (METADATA_LOG, some.log_events),
    (API_VERSIONS, some.api_versions_events),
    (ZOOKEEPER, some.zookeeper_events),
)
SMALL = ("end_offset", "index", "leader_epoch", "node_id", "zxid")
"""Fields in which messages of one cluster have to agree to get far."""


@st.composite
def messages(draw: st.DrawFn) -> tuple[str, bytes]:
    """A topic and the value of a message of `CLUSTER`: an event, perhaps with a forged field."""
    topic, events = draw(st.sampled_from(EVENTS))
    content: dict[str, Any] = orjson.loads(value_of(topic, draw(events)))
    if "records" in content and draw(st.booleans()):
        record = plausible.records | plausible.broken_records()
        content["records"] = orjson.loads(orjson.dumps(draw(st.lists(record, max_size=4))))
    for name in SMALL:
        if name in content and draw(st.booleans()):
            content[name] = draw(st.integers(0, 2))
    if "first_offset" in content:
        content["first_offset"] = 0
    if content["kind"] == "status":
        content["source"] = draw(st.sampled_from(["kraft", "zookeeper", "api-versions", "other"]))
        del content["offset_checksum"]  # for the source alone: the worker's rows do not have it
    for _ in range(draw(st.integers(0, 2))):
        forge(draw, content)
    return topic.name(), orjson.dumps(content | {"cluster": CLUSTER})


@pytest.mark.fuzz
@given(st.lists(messages(), min_size=1, max_size=6))
@settings(max_examples=200)
def test_any_messages_are_processed(sent: list[tuple[str, bytes]]) -> None:
    """Nothing is raised, all of it can be written, and a worker that restarts restores it."""
    state, table = MonitorState.of(CLUSTER), dict[str, bytes | None]()
    for offset, (topic, value) in enumerate(sent):
        message = InputMessage(topic, 0, offset, 1_000 + offset, CLUSTER.encode(), value)
        result = process(message, dict.fromkeys([CLUSTER], state).__getitem__)
        table.update(encode_result(BUS, result).rows)
        state = result.step.state
        encode_output(snapshot(state.image, 2_000))
        rows = [(name, row) for name, row in table.items() if row is not None]
        for restored in states_of_rows(rows).values():
            assert (restored.image, restored.firing) == (state.image, state.firing)
